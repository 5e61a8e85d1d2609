"""Measure whether what Covey promises about its decisions and probabilities holds; see ``__main__``."""

from benchmarks.promises.results import NAME, PAGE, rendered

__all__ = ["NAME", "PAGE", "rendered"]
