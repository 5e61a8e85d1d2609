"""What can be trained: every learner with its parameters."""
