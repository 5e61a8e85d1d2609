"""The version of Covey, and of the libraries that a model's numbers depend on."""

from __future__ import annotations

import platform
from importlib.metadata import version

__version__ = "0.1.0"


def software() -> dict[str, str]:
    """Return the versions of everything that a trained model's numbers depend on."""
    return {
        "covey": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "snowballstemmer")},
    }
