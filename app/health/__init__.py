"""Liveness, readiness and metrics of the service."""
