"""Limits of one API key: request rate, concurrent requests, and jobs in flight."""
