"""Structured logs on standard error. Text of messages is never logged."""

from __future__ import annotations

import logging
import sys
import traceback
from contextvars import ContextVar
from dataclasses import dataclass

import structlog

from app.settings import Settings


@dataclass(slots=True)
class RequestIds:
    """The ids that the log lines of a request contain, so that they can be found.

    Attributes:
        request_id: id of the request.
        trace_id: id of the caller's trace; None if the request has none.
        decision_id: the decision on the message of the request; None if there is none yet.
    """

    request_id: str
    trace_id: str | None = None
    decision_id: str | None = None


REQUEST: ContextVar[RequestIds | None] = ContextVar("request", default=None)
"""Ids of the current request, which each of its log lines contains."""


def note_decision(decision_id: str) -> None:
    """Let the following log lines of the current request contain the id of its decision."""
    if (ids := REQUEST.get()) is not None:
        ids.decision_id = decision_id


def configure(settings: Settings) -> None:
    """Set up logging for the process, including its libraries, in the format that the settings name."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_request_ids,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _omit_messages,
            renderer,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    logging.captureWarnings(True)  # otherwise Python prints its warnings as text
    # At level INFO, these libraries log every statement, request or message.
    for name in (
        "sqlalchemy.engine",
        "uvicorn.access",
        "httpx",
        "kombu",
        "amqp",
        "celery.redirected",
        "alembic",
    ):
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _add_request_ids(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    # Binding them as context variables of structlog would take longer, for every request.
    ids = REQUEST.get()
    if ids is None:
        return event
    added: structlog.typing.EventDict = {"request_id": ids.request_id}
    if ids.trace_id is not None:
        added["trace_id"] = ids.trace_id
    if ids.decision_id is not None:
        added["decision_id"] = ids.decision_id
    return {**added, **event}


def _omit_messages(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Replace an exception by its traceback without messages, which may contain text of mail."""
    exc_info = event.pop("exc_info", None)
    error = (
        sys.exc_info()[1] if exc_info is True else exc_info[1] if isinstance(exc_info, tuple) else exc_info
    )
    lines: list[str] = []
    while isinstance(error, BaseException):
        lines += [f"{type(error).__qualname__} at", *traceback.format_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if lines:
        event["exception"] = "\n".join(line.rstrip() for line in lines)
    return event
