"""Routers: decide which departments get a message, and record every decision."""
