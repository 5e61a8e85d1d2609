"""Measure the costs of learners and features; see ``__main__``."""
