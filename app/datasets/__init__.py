"""Data sets: labelled examples, uploaded once and immutable once ready."""
