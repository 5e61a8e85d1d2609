"""Routers: send messages to departments and record every decision."""
