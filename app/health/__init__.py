"""Whether the service lives, whether it can work, and how it does."""
