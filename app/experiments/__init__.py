"""Experiments: learners tried on the same splits of a data set, and compared."""
