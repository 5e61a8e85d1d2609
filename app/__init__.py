"""The HTTP service: its resources, database, storage, settings and command line."""
