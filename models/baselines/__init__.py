"""Plain learners to measure the others against."""
