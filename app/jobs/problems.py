"""The failure in the row of a failed job: problem details, as a response would contain them."""

from __future__ import annotations

from typing import Any

from app.api.errors import BadRecordItem, make_problem, problem_of
from app.errors import from_library_error
from models.errors import BadDataError, CoveyError, MemoryLimitError


def failure(code: str, detail: str) -> dict[str, Any]:
    """Return the problem of a job that the service has ended, or that an error in the service has."""
    return make_problem(500, code, detail).model_dump(exclude_none=True)


def failure_of(error: CoveyError) -> dict[str, Any]:
    """Return the problem of a job that an error of ``models`` has ended."""
    if isinstance(error, MemoryLimitError):  # as if the job had exceeded its limit
        return failure(error.code, str(error))
    problem = problem_of(from_library_error(error))
    if isinstance(error, BadDataError):
        problem.records = [
            BadRecordItem(line=record.line, reason=record.reason, field=record.field)
            for record in error.records
        ]
    return problem.model_dump(exclude_none=True)
