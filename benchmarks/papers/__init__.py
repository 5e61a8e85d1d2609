"""Reproduce the papers' tables and figures through the HTTP API, with one module each.

Each module has a ``TITLE`` and a function ``run(bench) -> str`` that returns its part of ``docs/results.md``.
"""
