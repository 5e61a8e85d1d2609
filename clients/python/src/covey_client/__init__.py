"""Client of Covey, the service that trains multilabel classifiers and routes e-mail."""

from covey_client._async.client import AsyncCovey
from covey_client._async.routing import AsyncRouter
from covey_client._retry import Retry
from covey_client._sync.client import Covey
from covey_client._sync.routing import Router
from covey_client._version import __version__
from covey_client.errors import (
    BadRequest,
    Conflict,
    ConnectionFailed,
    CoveyError,
    DatasetFailed,
    FieldError,
    Forbidden,
    HeadersTooLarge,
    InvalidRequest,
    NotAcceptable,
    NotFound,
    NotRouted,
    PreconditionFailed,
    ProblemError,
    RangeNotSatisfiable,
    RequestTimeout,
    ServerError,
    ServiceUnavailable,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    UnexpectedResponse,
    UnsupportedMediaType,
    WaitTimeout,
    WorkCancelled,
    WorkFailed,
)
from covey_client.progress import Progress

__all__ = [
    "AsyncCovey",
    "AsyncRouter",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "Covey",
    "CoveyError",
    "DatasetFailed",
    "FieldError",
    "Forbidden",
    "HeadersTooLarge",
    "InvalidRequest",
    "NotAcceptable",
    "NotFound",
    "NotRouted",
    "PreconditionFailed",
    "ProblemError",
    "Progress",
    "RangeNotSatisfiable",
    "RequestTimeout",
    "Retry",
    "Router",
    "ServerError",
    "ServiceUnavailable",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "UnexpectedResponse",
    "UnsupportedMediaType",
    "WaitTimeout",
    "WorkCancelled",
    "WorkFailed",
    "__version__",
]
