"""Evaluations: measures of model versions on training data and on other data sets."""
