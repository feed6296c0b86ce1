"""What each namespace may take of the machines that are bought: who is charged what, and whom a limit holds back."""
