"""Maintenance: backup, restore and retention."""
