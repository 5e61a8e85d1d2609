"""Data sets: labelled examples that are uploaded once and are immutable when ready."""
