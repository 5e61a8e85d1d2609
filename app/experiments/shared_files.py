"""Files that the cells of an experiment share: its folds, and the features of each fold.

The job of the experiment computes the folds once, before there are cells. The first cell that needs the
features of a fold computes and stores them, and other cells read them. If two cells start at the same
moment, both may compute the same features, and the results are identical to the bit. The files are deleted
when the experiment has ended.
"""

from __future__ import annotations

import hashlib
import io

import numpy as np
import structlog

from app.context import AppContext
from app.experiments.folds import Folds
from models.catalog import FeaturesConfig

log = structlog.get_logger()

FOLDER = "shared"


def folds_key(experiment_id: str) -> str:
    """Return the storage key of an experiment's folds."""
    return f"{FOLDER}/{experiment_id}.folds.npy"


def save_folds(ctx: AppContext, experiment_id: str, folds: Folds) -> None:
    """Store the folds for the cells."""
    # Numpy asks a file for its position, which the pipe of an upload to a bucket does not have.
    content = io.BytesIO()
    np.save(content, folds.of_example, allow_pickle=False)
    with ctx.storage.create(folds_key(experiment_id)) as file:
        file.write(content.getbuffer())


def load_folds(ctx: AppContext, experiment_id: str) -> Folds | None:
    """Load the folds; return None if the file is missing, as it may be after a restore from a backup."""
    try:
        path = ctx.storage.local(folds_key(experiment_id))
    except FileNotFoundError:
        return None
    return Folds(np.load(path, allow_pickle=False))


def features_key(experiment_id: str, features: FeaturesConfig, fold: int) -> str:
    """Return the storage key of the features that are fitted on the training part of a fold."""
    digest = hashlib.sha256(features.model_dump_json().encode()).hexdigest()[:16]
    return f"{FOLDER}/{experiment_id}.{digest}.{fold}.safetensors"


def delete_all(ctx: AppContext, experiment_id: str) -> None:
    """Delete the files of an experiment that has ended, if possible now; otherwise retention does it."""
    try:
        keys = [file.key for file in ctx.storage.files(FOLDER) if experiment_of(file.key) == experiment_id]
    except OSError as error:
        log.warning("storage.files_not_deleted", experiment_id=experiment_id, reason=type(error).__name__)
        return
    ctx.deletion.delete(keys)


def experiment_of(key: str) -> str:
    """Return the id of the experiment that a file belongs to.

    >>> experiment_of("shared/exp_01.folds.npy")
    'exp_01'
    """
    return key.removeprefix(f"{FOLDER}/").split(".", maxsplit=1)[0]
