"""The hot path: loaded models and the predictions they make."""
