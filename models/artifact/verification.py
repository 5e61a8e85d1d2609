"""Checks that a saved model can be used, before anything refers to its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.artifact.loading import load
from models.data.examples import ExampleSource
from models.errors import ArtifactError, UnsuitableDataError
from models.pipeline import Pipeline


def check_saved(path: Path, pipeline: Pipeline, source: ExampleSource) -> None:
    """Load a model that was just saved, and compare its scores for one example with those of the original.

    Args:
        path: the file.
        pipeline: the pipeline that was saved in the file.
        source: examples of its kind; the first one is scored.

    Raises:
        UnsuitableDataError: the file cannot be loaded, or its scores differ in any bit.
    """
    first = source.where(np.arange(source.n_examples) == 0)
    try:
        same = load(path).scores(first).tobytes() == pipeline.scores(first).tobytes()
    except ArtifactError as error:
        raise UnsuitableDataError(
            f"the training gave a model that cannot be loaded: {error}; scale the features, or use other "
            "parameters"
        ) from error
    if not same:
        raise UnsuitableDataError(
            "the training gave a model whose scores change when it is saved and loaded; scale the features, "
            "or use other parameters"
        )
