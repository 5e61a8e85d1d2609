"""Structured logs on standard error. Text of messages is never logged."""

from __future__ import annotations

import logging
import sys
import traceback
from contextvars import ContextVar

import structlog

from app.settings import Settings

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Id of the current request, which each of its log lines contains."""


def configure(settings: Settings) -> None:
    """Set up logging for the process, including its libraries, in the format that the settings name."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_request_id,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
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


def _add_request_id(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    # Binding it as a context variable of structlog would take longer, for every request.
    request_id = REQUEST_ID.get()
    return event if request_id is None else {"request_id": request_id, **event}


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
