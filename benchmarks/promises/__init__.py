"""Measure whether what Covey promises about its decisions and probabilities holds; see ``__main__``."""

from benchmarks.promises.results import NAME, rendered

__all__ = ["NAME", "rendered"]
