"""What the daemon shows of itself: metrics, status, health, logs."""
