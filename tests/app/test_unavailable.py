"""If the database or the storage is unavailable, the API returns 503 with ``Retry-After``."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest
from fastapi import Request
from sqlalchemy import exc

from app.api import problem_handlers
from app.storage import MissingFileError, StorageUnavailableError

STORAGE_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.ENODEV, errno.ESTALE),
    *(errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN),
)

UNAVAILABLE = {
    "the database does not respond": exc.OperationalError("SELECT 1", {}, OSError("connection refused")),
    "the connection is closed": exc.InterfaceError("SELECT 1", {}, OSError("connection closed")),
    "every connection is in use": exc.TimeoutError("QueuePool limit"),
    "the bucket does not respond": StorageUnavailableError("timeout"),
    **{f"the storage returns {errno.errorcode[number]}": OSError(number, "…") for number in STORAGE_ERRORS},
}


def send_request(error: Exception) -> tuple[int, str, str | None]:
    """Return the status, the error code and ``Retry-After`` of the response to a request that raises."""
    request = Request({"type": "http", "path": "/", "headers": []})
    response = asyncio.run(problem_handlers.respond_always(request, error))
    assert response.headers["content-type"] == "application/problem+json"
    code = json.loads(bytes(response.body))["code"]
    return response.status_code, code, response.headers.get("retry-after")


@pytest.mark.parametrize("cause", UNAVAILABLE)
def test_an_unavailable_dependency_returns_503_and_retry_after(cause: str) -> None:
    status, code, retry_after = send_request(UNAVAILABLE[cause])
    in_database = isinstance(UNAVAILABLE[cause], exc.SQLAlchemyError)
    assert (status, code) == (503, "not_ready" if in_database else "storage_unavailable")
    assert retry_after is not None
    assert int(retry_after) > 0


def test_a_missing_file_has_an_error_of_its_own() -> None:
    assert send_request(MissingFileError("experiments/exp_1.job_1.1.safetensors")) == (
        503,
        "file_missing",
        "60",
    )


def test_other_os_errors_return_500() -> None:
    assert send_request(FileNotFoundError(errno.ENOENT, "No such file or directory")) == (
        500,
        "internal_error",
        None,
    )
