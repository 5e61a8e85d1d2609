"""Evaluations: what a version is worth, on the examples of its training and on others."""
