# Generated from _async/__init__.py by unasync.py. Change that file instead.
"""The client for programs without an event loop."""
