"""Training jobs: train new versions of models."""
