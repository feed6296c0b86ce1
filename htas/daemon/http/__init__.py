"""HTTP: who may ask for what, sessions, and the endpoints that change something."""
