"""Protocols of other projects over the predictions and routers of the service."""
