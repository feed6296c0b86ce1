"""What the commands and the HTTP API tell alike: structs for programs, and words; no terminal and no HTTP."""
