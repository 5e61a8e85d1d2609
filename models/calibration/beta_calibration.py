"""Reads calibrations that earlier versions of Covey saved: beta calibrations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.arrays import AnyArray
from models.serialization.state import State, read_array, require

_KNOTS = np.linspace(-6.0, 6.0, 25)


def piecewise_linear(state: Mapping[str, AnyArray], n_labels: int) -> State:
    """Convert the state of a beta calibration to that of a piecewise linear one.

    A beta calibration (Kull, Silva Filho and Flach 2017) of s = σ(z) has the logit
    left · ln s - right · ln(1 - s) + offset. Chords between knots replace it, which changes logits by less
    than a hundredth of the difference of left and right.

    Raises:
        ArtifactError: the state is invalid.
    """
    left, right, offset = (
        read_array(state, name, "float64", (n_labels,))[:, np.newaxis] for name in ("left", "right", "offset")
    )
    require(bool((left > 0).all() and (right > 0).all()), "a slope is not positive")
    softplus = np.logaddexp(0.0, _KNOTS)
    logits = left * (_KNOTS - softplus) + right * softplus
    slopes = np.concatenate([left, np.diff(logits, axis=1) / np.diff(_KNOTS), right], axis=1)
    return {
        "center": state["center"],
        "spread": state["spread"],
        "set_weights": state["set_weights"],
        "knots": np.tile(_KNOTS, (n_labels, 1)),
        "slopes": slopes,
        "offset": (offset + logits[:, :1] - left * _KNOTS[0])[:, 0],
    }
