"""The papers' tables and figures, made again through the HTTP API: one module each.

A module has a ``TITLE`` and a function ``run(bench) -> str`` that gives its part of ``docs/results.md``.
"""
