"""Routers: a message in, departments out, and a record of every decision."""
