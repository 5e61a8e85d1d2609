"""Class weights: how much the examples with a label count, relative to the examples without it."""

from __future__ import annotations

from typing import Literal, TypeAlias

ClassWeight: TypeAlias = Literal["none", "balanced"]
"""``balanced`` gives the examples with a label and those without it the same total weight, as scikit-learn
does: n/(2·n_positive) and n/(2·n_negative) for each."""
