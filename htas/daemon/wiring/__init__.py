"""The ports put together from the configuration."""
