"""Models, their immutable versions, and the aliases of versions."""
