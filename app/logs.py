"""Structured logs on standard error. Nothing that was said in a mail is ever logged."""

from __future__ import annotations

import logging
import sys
import traceback

import structlog

from app.settings import Settings


def configure(settings: Settings) -> None:
    """Send every log of the process, libraries' included, through one form."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
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
            _places_only,
            renderer,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    # Their lines about every statement, request or message would drown ours.
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


def _places_only(
    _logger: object, _name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A traceback without the messages of its exceptions: in them a mail's text might stand."""
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    told: list[str] = []
    while isinstance(error, BaseException):
        told += [f"{type(error).__qualname__} at", *traceback.format_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if told:
        event["exception"] = "\n".join(line.rstrip() for line in told)
    return event
