"""The file of each finished cell: the measures of its held-out examples, and its errors."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import numpy as np
import safetensors
import structlog
from safetensors import SafetensorError

from app.context import AppContext
from app.errors import FileDamaged
from app.jobs.queue import Claim
from models.arrays import AnyArray
from models.data.store import StoredExamples
from models.serialization.array_file import write_arrays
from models.trials import TrialResult

log = structlog.get_logger()

_ERRORS = "errors.json"


def save(
    ctx: AppContext,
    experiment_id: str,
    claim: Claim,
    trial: TrialResult,
    measures: Collection[str],
    test: StoredExamples,
) -> str:
    """Store the measures of each held-out example for significance tests, and the errors.

    Returns:
        the storage key.
    """
    key = f"experiments/{experiment_id}.{claim.job_id}.{claim.fence}.safetensors"
    arrays: dict[str, AnyArray] = {name: trial.examples[name] for name in measures if name in trial.examples}
    if trial.errors is not None:
        content = asdict(trial.errors)
        ids = test.ids()
        for document in content["examples"]:
            document["id"] = ids[document["example"]]
        arrays[_ERRORS] = np.frombuffer(json.dumps(content, ensure_ascii=False).encode(), dtype=np.uint8)
    with ctx.storage.temporary_file(".safetensors") as path:
        write_arrays(path, arrays)
        ctx.storage.put(key, path)
    return key


def load_examples(ctx: AppContext, key: str) -> dict[str, Any]:
    """Return the measures of the held-out examples of a cell, (n,) each, by name.

    Raises:
        FileDamaged: the file cannot be read.
    """
    return _load(ctx, key, errors=False)


def load_errors(ctx: AppContext, key: str) -> Any:
    """Return the errors of a cell, as JSON of ``TrialErrors``.

    Raises:
        FileDamaged: the file cannot be read.
    """
    arrays = _load(ctx, key, errors=True)
    return json.loads(arrays[_ERRORS].tobytes())


def _load(ctx: AppContext, key: str, *, errors: bool) -> dict[str, Any]:
    try:
        with safetensors.safe_open(ctx.storage.local(key), framework="numpy") as file:
            names = [name for name in file.keys() if (name == _ERRORS) == errors]  # noqa: SIM118
            return {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        log.error("storage.file_damaged", key=key)  # noqa: TRY400 - a traceback adds nothing
        raise FileDamaged("an experiment's held-out examples") from error
