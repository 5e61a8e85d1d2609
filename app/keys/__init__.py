"""API keys and their scopes."""
