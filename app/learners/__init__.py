"""The learners that can be trained, with their parameters."""
