"""The pivot of each round and label, which the compressed hypothesis does not have.

It is stored with the model for people who want to read it; scores do not need it. A pivot takes 12 bytes,
because it refers to a pair of the compressed hypothesis: 276 kB for 200 rounds and 115 labels, and 24 MB for
200 rounds and 10,000 labels. The pairs themselves take 40 bytes each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import AnyArray, Ints
from models.base.pivots import Pivots
from models.boosting.hypothesis import Hypothesis, WeakHypothesis, pairs_of
from models.serialization.state import State, read_array, require, require_index_range

MAX_PIVOTS = 1 << 23
"""Maximum number of pivots in a model, 96 MiB. Rounds that would exceed it are left out."""


@dataclass(frozen=True)
class PivotHistory:
    """The n pivots of the first rounds, by round and label.

    Attributes:
        starts: (rounds + 1,) where the pivots of each round start.
        pairs: (n,) the pair of the hypothesis that has the label, the feature and the threshold.
        absent: (n,) a₀ of the round, float32.
        present: (n,) a₁ of the round, float32.
    """

    starts: Ints
    pairs: AnyArray
    absent: AnyArray
    present: AnyArray

    @classmethod
    def of(cls, rounds: Sequence[WeakHypothesis]) -> PivotHistory:
        """The pivots of the weak hypotheses of all rounds."""
        starts = np.concatenate([[0], np.cumsum([len(one.labels) for one in rounds], dtype=np.int64)])
        kept = int(np.searchsorted(starts, MAX_PIVOTS, side="right")) - 1
        n = int(starts[kept])
        empty = np.zeros(0, dtype=np.float32)
        return cls(
            starts[: kept + 1],
            pairs_of(rounds)[:n].astype(np.int32),
            np.concatenate([empty, *(one.absent.astype(np.float32) for one in rounds[:kept])]),
            np.concatenate([empty, *(one.present.astype(np.float32) for one in rounds[:kept])]),
        )

    def select(self, hypothesis: Hypothesis, label: int | None, after: int, limit: int) -> Pivots:
        """The next pivots after a position, of one label or of all.

        Args:
            hypothesis: the hypothesis that the pairs refer to.
            label: index of the label; None for all labels.
            after: position of the last pivot that is not needed; -1 for the first ones.
            limit: maximum number of pivots.
        """
        positions = np.arange(min(after + 1, len(self.pairs)), len(self.pairs))
        if label is not None:
            positions = positions[hypothesis.labels[self.pairs[positions]] == label]
        positions = positions[:limit]
        pairs = self.pairs[positions]
        return Pivots(
            positions,
            np.searchsorted(self.starts, positions, side="right"),
            hypothesis.labels[pairs],
            hypothesis.features[pairs],
            None if hypothesis.by_presence else hypothesis.thresholds[pairs],
            self.absent[positions],
            self.present[positions],
        )

    def state(self) -> State:
        """The history as named arrays."""
        return {
            "round_starts": self.starts,
            "round_pairs": self.pairs,
            "round_absent": self.absent,
            "round_present": self.present,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_pairs: int) -> PivotHistory:
        """Return the history with a state that ``state`` returned.

        Args:
            state: named arrays.
            n_pairs: number of pairs of the hypothesis.

        Raises:
            ArtifactError: the pivots are out of range.
        """
        starts = read_array(state, "round_starts", "int64", (None,))
        pairs = read_array(state, "round_pairs", "int32", (None,))
        absent = read_array(state, "round_absent", "float32", pairs.shape)
        present = read_array(state, "round_present", "float32", pairs.shape)
        require_index_range(pairs, n_pairs, "round_pairs")
        valid = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(pairs)
        require(bool(valid and (np.diff(starts) >= 0).all()), "round_starts does not divide the pivots")
        return cls(starts, pairs, absent, present)
