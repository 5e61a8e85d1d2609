"""The arrays of a loaded model are maps of its file, which all processes of a machine share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_models import ALGORITHMS, fitted

from models import artifact
from models.arrays import AnyArray

SMALL_BYTES = 2048
"""Arrays with one number for each label or so may be private."""

PRIVATE = {
    "adaboost_mh": "a hypothesis is small; it is converted to score curves of the terms that it tests",
    "mp_boost": "as adaboost_mh",
    "naive_bayes": "the file contains counts, which partial fits add to; the weights are their logarithms",
}
"""Learners with larger private arrays, and the reasons."""


def arrays(root: object) -> Iterator[AnyArray]:
    """Yield all arrays that an object refers to."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, str | bytes | int | float | type):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            yield item
        elif isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            pending += item
        else:
            pending += getattr(item, "__dict__", {}).values()
            slots = (getattr(base, "__slots__", ()) for base in type(item).__mro__)
            names = [name for names in slots for name in ([names] if isinstance(names, str) else names)]
            pending += [getattr(item, name) for name in names if hasattr(item, name)]


def is_mapped(array: AnyArray) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_arrays_are_maps_of_the_file(algorithm: str, tmp_path: Path) -> None:
    file = tmp_path / "model.covey"
    artifact.save(fitted(algorithm), file)
    pipeline = artifact.load(file)
    pipeline.predictions(["w0001 w0100 w0399"])  # builds what is built on first use
    found = list(arrays(pipeline))
    private = [array for array in found if not is_mapped(array) and array.nbytes > SMALL_BYTES]
    assert bool(private) == (algorithm in PRIVATE), [(array.dtype, array.shape) for array in private]
    assert any(is_mapped(array) for array in found)
