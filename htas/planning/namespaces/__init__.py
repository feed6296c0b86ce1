"""What each namespace may take of the machines that are bought and pin on them: who is charged, whom a limit holds."""
