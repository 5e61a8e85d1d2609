"""The Open Inference Protocol, version 2, over HTTP: predictions for clients of other model servers."""
