"""The parts of a snapshot, the state from which an interrupted training resumes.

A snapshot always has a fingerprint of the training, except in the phase ``features``, when it is empty. In
the phase ``training`` it also has the snapshot of the learner. In the phase ``thresholds`` it has the fitted
learner with its summary, the held-out scores so far, the current fold and the snapshot of this fold's
learner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from models.arrays import AnyArray, Labels, Matrix
from models.base import Learner, State, TrainingSummary
from models.decisions import DecisionRule
from models.errors import SnapshotError

_FORMAT = 2
"""Number of the format of snapshots. A training continues only from a snapshot of its own format, so a
release that stores other arrays must count it up; the service then starts the training again."""


def add_prefix(prefix: str, state: Mapping[str, AnyArray]) -> State:
    """Return the arrays of a state with ``<prefix>.`` before their names."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def select_prefix(prefix: str, state: Mapping[str, AnyArray]) -> State:
    """Return the arrays whose names start with ``<prefix>.``, without the prefix."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in state.items() if name.startswith(start)}


def fitted_learner_state(learner: Learner) -> State:
    """Return a fitted learner with its summary as part of a snapshot."""
    summary = json.dumps(asdict(learner.summary_)).encode()
    return {
        **add_prefix("fitted", learner.get_state()),
        "fitted.summary": np.frombuffer(summary, dtype=np.uint8),
    }


def restore_fitted_learner(learner: Learner, snapshot: Mapping[str, AnyArray]) -> bool:
    """Restore a fitted learner from a snapshot.

    Returns:
        whether the snapshot has a fitted learner. If not, the learner is unchanged.
    """
    if "fitted.summary" not in snapshot:
        return False
    learner.set_state(select_prefix("fitted", snapshot))
    learner.summary_ = TrainingSummary(**json.loads(snapshot["fitted.summary"].tobytes()))
    return True


def fingerprint(
    learner: Learner, decision: DecisionRule, seed: int, data: Sequence[Matrix | Labels]
) -> AnyArray:
    """Return a SHA-256 digest of the format, the parameters and the data of a training, as bytes."""
    parameters = (learner.algorithm, sorted(learner.get_params().items()))
    digest = hashlib.sha256(repr((_FORMAT, parameters, decision, seed)).encode())
    for matrix in data:
        digest.update(repr(matrix.shape).encode())
        for array in (matrix.data, matrix.indices, matrix.indptr):
            digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def check_fingerprint(snapshot: Mapping[str, AnyArray], expected: AnyArray) -> None:
    """Check that a snapshot belongs to this training.

    Raises:
        SnapshotError: it belongs to another one.
    """
    if "fingerprint" in snapshot and not np.array_equal(snapshot["fingerprint"], expected):
        raise SnapshotError("the snapshot belongs to a training on other data or with other parameters")
