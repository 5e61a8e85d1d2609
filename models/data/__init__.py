"""Labelled examples: what they are, how files of them are read, and how they are stored."""
