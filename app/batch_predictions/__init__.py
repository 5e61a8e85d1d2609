"""Batch predictions: the predictions of a version for all examples of a data set, as one file."""
