"""Measure serving; see ``__main__``. The parts are the servers, the load, and the goals."""
