"""The probabilities of labels and of label sets, with parameters that are fitted on held-out scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul
from typing import Self

import numpy as np

from models.arrays import AnyArray, Bools, Floats
from models.calibration.context import N_WEIGHTS, logits_in_context
from models.calibration.label_calibration import MAX_LOGIT, LabelCalibration, expit
from models.calibration.label_sets import N_FEATURES, set_features
from models.serialization.state import State, read_array, require

_OF_LABELS = ("center", "spread", "knots", "slopes", "offset", "max_logit")

MAX_KNOTS = 64
"""Largest number of knots of a label that is read."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Converts scores to the probability of each label and of each label set.

    Attributes:
        labels: converts the score of each label on its own.
        context_weights: (3,) how the probability of a label also depends on the other labels; see
            ``models.calibration.context``.
        set_weights: (``N_FEATURES``,) the weights of the features of a label set in the logit of the
            probability that it is right; see ``set_features``.
        without_label: the share of examples without a label: the probability that the empty label set of a
            document without a known word is right.
    """

    labels: LabelCalibration
    context_weights: Floats
    set_weights: Floats
    without_label: float

    def probabilities(
        self, scores: Floats, predicted: Bools, empty: Bools | None = None
    ) -> tuple[Floats, Floats]:
        """Return the probability of each label, and the probability that each label set is exactly right.

        They agree: a label set is never more probable than one of its labels, or than the absence of another
        label.

        Args:
            scores: (n, k) scores.
            predicted: (n, k) whether each label is in the label set, whatever chose it.
            empty: (n,) whether the document has no known word; None if all have one.

        Returns:
            (n, k) and (n,) probabilities, strictly between 0 and 1. Those of a document have the same bits,
            whatever the other documents are.
        """
        logits = self.labels.label_logits(scores)
        weights = self.set_weights.tolist()
        of_sets = np.array(
            [
                _bounded_expit(sum(map(mul, weights, features)))
                for features in set_features(logits, np.log1p(np.exp(-logits)), predicted)
            ],
            dtype=np.float64,
        )
        if empty is not None:
            of_sets[empty] = self.without_label
        in_context = logits_in_context(logits, self.context_weights)
        of_labels = expit(np.minimum(np.maximum(in_context, -MAX_LOGIT), self.labels.max_logit))
        # What is known of the whole label set is known of each label, too.
        bound = of_sets[:, np.newaxis]
        return np.where(predicted, np.maximum(of_labels, bound), np.minimum(of_labels, 1.0 - bound)), of_sets

    def get_state(self) -> State:
        """Return the parameters as arrays by name."""
        return {
            **{name: getattr(self.labels, name) for name in _OF_LABELS},
            "context_weights": self.context_weights,
            "set_weights": self.set_weights,
            "without_label": np.array([self.without_label]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_labels: int) -> Self:
        """Restore the calibration of k labels from ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        n_knots = state["knots"].shape[-1] if "knots" in state else 0
        require(n_knots <= MAX_KNOTS, f"'knots' has more than {MAX_KNOTS} columns")
        shapes: dict[str, tuple[int, ...]] = {"knots": (n_labels, n_knots), "slopes": (n_labels, n_knots + 1)}
        arrays = {
            name: read_array(state, name, "float64", shapes.get(name, (n_labels,))) for name in _OF_LABELS
        }
        for name in ("spread", "slopes"):
            require((arrays[name] > 0).all(), f"{name!r} contains a number that is not positive")
        require((np.diff(arrays["knots"], axis=1) >= 0).all(), "'knots' are not in ascending order")
        require((np.abs(arrays["max_logit"]) <= MAX_LOGIT).all(), "'max_logit' is out of range")
        without_label = float(read_array(state, "without_label", "float64", (1,))[0])
        require(0 < without_label < 1, "'without_label' is no probability")
        return cls(
            LabelCalibration(**arrays),
            read_array(state, "context_weights", "float64", (N_WEIGHTS,)),
            read_array(state, "set_weights", "float64", (N_FEATURES,)),
            without_label,
        )


def _bounded_expit(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-MAX_LOGIT, min(logit, MAX_LOGIT))))
