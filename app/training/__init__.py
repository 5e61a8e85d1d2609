"""Training jobs: a request becomes a model version."""
