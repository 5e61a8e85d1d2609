"""What the cells of an experiment share, as files: who is held out when, and features that several use.

Folds are computed once, before there are cells. Features are computed by the first cell that needs them for
its fold, and read by the others; cells that start at the same moment may compute the same features both,
to the same bits. All of it goes when the experiment has ended.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from app.environment import Environment
from app.experiments.schemas import ExperimentCreate, FoldsSplit
from app.training.schemas import GivenSplit, RandomSplit
from models.arrays import Bools, Ints
from models.catalog import FeaturesUnion
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.splits import random_split, stratified_folds

FOLDER = "shared"

ALWAYS_TRAINING = -1
NEITHER = -2


@dataclass(frozen=True)
class Folds:
    """Who is held out when.

    Attributes:
        of_example: (g,) the fold that holds an example out, or ``ALWAYS_TRAINING``, or ``NEITHER``.
    """

    of_example: Ints

    def training(self, fold: int) -> Bools:
        """(g,) the examples to learn from."""
        return np.asarray((self.of_example != fold) & (self.of_example != NEITHER))

    def test(self, fold: int) -> Bools:
        """(g,) the examples held out."""
        return np.asarray(self.of_example == fold)


def share_out(request: ExperimentCreate, stored: StoredExamples, tree: LabelTree | None) -> Folds:
    """Share the examples out.

    Raises:
        UnsuitableDataError: a part would be empty.
    """
    if isinstance(request.split, GivenSplit):
        codes = {"test": 0, "train": ALWAYS_TRAINING, None: NEITHER}
        folds = Folds(np.array([codes[split] for split in stored.splits()], dtype=np.int64))
    elif isinstance(request.split, RandomSplit):
        if stored.n_examples < 2:
            raise UnsuitableDataError("one example cannot be split into two parts")
        test = random_split(stored.n_examples, request.split.test_fraction, seed=request.seed)
        folds = Folds(np.where(test, 0, ALWAYS_TRAINING))
    else:
        assert isinstance(request.split, FoldsSplit), "defaults were filled in"  # noqa: S101
        label_sets = stored.label_sets()
        Y = indicator_matrix(label_sets, collect_labels(label_sets, tree), tree)
        folds = Folds(stratified_folds(Y, request.split.folds, seed=request.seed))
    return folds


def folds_key(experiment_id: str) -> str:
    """Where the folds are kept."""
    return f"{FOLDER}/{experiment_id}.folds.npy"


def save_folds(env: Environment, experiment_id: str, folds: Folds) -> None:
    """Keep the folds for the cells."""
    with env.storage.create(folds_key(experiment_id)) as file:
        np.save(file, folds.of_example, allow_pickle=False)


def load_folds(env: Environment, experiment_id: str) -> Folds | None:
    """The folds that were kept; None where the file is gone, as it may be in a restored backup."""
    try:
        path = env.storage.local(folds_key(experiment_id))
    except FileNotFoundError:
        return None
    return Folds(np.load(path, allow_pickle=False))


def features_key(experiment_id: str, features: FeaturesUnion, fold: int) -> str:
    """Where features are kept that were fitted for a fold."""
    digest = hashlib.sha256(features.model_dump_json().encode()).hexdigest()[:16]
    return f"{FOLDER}/{experiment_id}.{digest}.{fold}.safetensors"


def owner_of(key: str) -> str:
    """The experiment whose file it is.

    >>> owner_of("shared/exp_01.folds.npy")
    'exp_01'
    """
    return key.removeprefix(f"{FOLDER}/").split(".", maxsplit=1)[0]
