"""Webhooks: tell other systems about events with signed requests."""
