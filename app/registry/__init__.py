"""Models, their immutable versions, the aliases that name them, and what they predict."""
