"""Traces: spans of requests and jobs, exported with OpenTelemetry if it is installed and configured."""
