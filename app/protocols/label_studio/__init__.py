"""The machine learning backend of Label Studio: predictions for tasks, and feedback from annotations."""
