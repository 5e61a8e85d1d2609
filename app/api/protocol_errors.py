"""Error responses of operations that follow the protocol of another project.

Its clients do not know problem documents. They read an object with the field ``error``, which contains a
sentence.
"""

from __future__ import annotations

import re

from fastapi.responses import JSONResponse

from app.api.errors import PROBLEM_JSON, Problem

_PATHS = re.compile(r"/v2(?:/.*)?|/label-studio/.*", re.DOTALL)


def error_response(path: str, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """Convert a problem to the response that the clients of a path understand."""
    if _PATHS.fullmatch(path):
        return JSONResponse({"error": error_text(problem)}, problem.status, headers=headers)
    return JSONResponse(
        problem.model_dump(exclude_none=True), problem.status, headers=headers, media_type=PROBLEM_JSON
    )


def error_text(problem: Problem) -> str:
    """Return the detail of a problem, with the place of the invalid value."""
    place = problem.errors[0].pointer if problem.errors else ""
    return problem.detail if place in problem.detail else f"{place}: {problem.detail}"
