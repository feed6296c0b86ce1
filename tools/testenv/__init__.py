"""Real services and daemons for tests and benches: started, looked at, broken and stopped."""
