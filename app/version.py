"""The version of Covey."""

__version__ = "0.1.0"
