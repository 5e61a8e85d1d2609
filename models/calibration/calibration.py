"""The probabilities of labels and of label sets, with parameters that are fitted on held-out scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from models.arrays import AnyArray, Bools, Floats
from models.calibration.label_calibration import MAX_LOGIT, LabelCalibration, bounded, expit
from models.calibration.label_sets import N_FEATURES, set_features
from models.serialization.state import State, read_array, require

_OF_LABELS = ("center", "spread", "left", "right", "offset")


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Converts scores to the probability of each label and of each label set.

    Attributes:
        labels: converts the scores of each label.
        set_weights: (``N_FEATURES``,) the weights of the features of a label set in the logit of the
            probability that it is right; see ``set_features``.
    """

    labels: LabelCalibration
    set_weights: Floats

    def label_probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each label, (n, k), strictly between 0 and 1, for scores, (n, k)."""
        return self.labels.label_probabilities(scores)

    def thresholds_at(self, probabilities: Floats) -> Floats:
        """Return the score at which each label has the given probability, (k,) each."""
        return self.labels.thresholds_at(probabilities)

    def set_probabilities(self, probabilities: Floats, predicted: Bools) -> Floats:
        """Return the probability that each label set is exactly right.

        Args:
            probabilities: (n, k) as ``label_probabilities`` returns them.
            predicted: (n, k) whether each label is in the label set, whatever chose it.

        Returns:
            (n,) probabilities, strictly between 0 and 1.
        """
        logits = set_features(probabilities, predicted) @ self.set_weights
        return expit(bounded(logits, MAX_LOGIT))

    def get_state(self) -> State:
        """Return the parameters as arrays by name."""
        return {name: getattr(self.labels, name) for name in _OF_LABELS} | {"set_weights": self.set_weights}

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_labels: int) -> Self:
        """Restore the calibration of k labels from ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        arrays = {name: read_array(state, name, "float64", (n_labels,)) for name in _OF_LABELS}
        for name in ("spread", "left", "right"):
            require((arrays[name] > 0).all(), f"{name!r} contains a number that is not positive")
        return cls(LabelCalibration(**arrays), read_array(state, "set_weights", "float64", (N_FEATURES,)))
