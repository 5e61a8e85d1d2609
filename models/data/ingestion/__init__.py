"""Turns a file into a stored data set and a report: checks, counts and duplicate detection."""
