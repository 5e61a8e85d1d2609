"""The failure in the row of a failed job: problem details, as a response would contain them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.api.errors import BadRecordItem, make_problem, problem_of
from app.db import tables
from app.db.session import Transaction
from app.errors import from_library_error
from models.data.advice import suggestions_of
from models.errors import BadDataError, CoveyError


def failure(code: str, detail: str) -> dict[str, Any]:
    """Return the problem of a job that the service has ended, or that an error in the service has."""
    return make_problem(500, code, detail).model_dump(exclude_none=True)


def with_sizes(tx: Transaction, dataset_id: str | None, problem: dict[str, Any]) -> dict[str, Any]:
    """Return a problem that also says how large the data set of its job is, if memory was not enough."""
    dataset = None if dataset_id is None else tx.session.get(tables.Dataset, dataset_id)
    if problem["code"] != "out_of_memory" or dataset is None or dataset.report is None:
        return problem
    sizes = f"{dataset.report['n_examples']:,} examples and {dataset.report['n_labels']:,} labels"
    detail = (
        f"{problem['detail']}; the data set has {sizes}: select fewer features, merge rare labels, use fewer "
        "examples, or raise COVEY_JOB_MEMORY_BYTES"
    )
    return {**problem, "detail": detail}


def failure_of(error: CoveyError | MemoryError) -> dict[str, Any]:
    """Return the problem of a job that an error of ``models`` or a lack of memory has ended."""
    if isinstance(error, MemoryError):
        return failure("out_of_memory", f"the job needs more memory: {error}")
    problem = problem_of(from_library_error(error))
    if not isinstance(error, BadDataError):
        return problem.model_dump(exclude_none=True)
    problem.records = [
        BadRecordItem(line=record.line, reason=record.reason, field=record.field) for record in error.records
    ]
    # What the console needs to read the file again. The problem in a response does not have it.
    suggestions = {text: asdict(suggestion) for text, suggestion in suggestions_of(error).items()}
    return {**problem.model_dump(exclude_none=True), "format": error.format, "suggestions": suggestions}
