"""Prediction: model versions loaded in memory, and the predictions of documents."""
