"""Other servers around plain scorers. These files run in environments of their own, without Covey."""
