"""The command line: ``covey`` and its commands."""
