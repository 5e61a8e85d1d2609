"""Where the time of a request goes: the CPU time of each layer, called in one process without sockets.

The time of the server is the time of a request over HTTP minus the time of the same request as a call of the
application.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from fastapi import FastAPI, Response
from starlette.types import Message, Receive, Scope, Send

from app.api.direct_routes import DirectRequest
from app.api.request_head import RequestHead
from app.api.structs import to_json
from app.api.validation import BodyValidator
from app.context import AppContext
from app.main import create_app
from app.routing import api as routing
from app.routing.decision_content import message_summary, new_decision
from app.routing.decision_rows import DecisionRow
from app.routing.decision_rules import RoutingOutcome
from app.routing.decision_writer import DecisionWriter
from app.serving import api as predictions
from app.serving import responses
from app.serving.schemas import PredictRequest
from app.settings import Settings
from benchmarks.serving.bodies import PLACEHOLDER, read_bodies
from benchmarks.serving.processes import Target
from benchmarks.serving.report import Layer
from benchmarks.serving.service import ROUTER
from benchmarks.serving.setup import Setup
from benchmarks.serving.throughput import run_side
from benchmarks.serving.wrk import LoadError
from models import artifact
from models.mail import read_message
from models.pipeline import Pipeline

CALLS = 640
CONCURRENT = 16
REPETITIONS = 3

Arguments: TypeAlias = tuple[Scope, Receive, Send]
"""Arguments of an ASGI application."""

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]

Argument = TypeVar("Argument")


def measure(setup: Setup) -> list[Layer]:
    """Measure the layers of a prediction and of a message, on SQLite."""
    targets = {"predict": setup.predict(setup.sqlite, "mp_boost"), "message": setup.messages(setup.sqlite)}
    over_http = {
        name: statistics.median(
            run_side(target, setup.sqlite.pids, setup.seconds).cpu_us for _ in range(setup.rounds)
        )
        for name, target in targets.items()
    }
    with (
        Path(os.devnull).open("w") as log,
        redirect_stderr(log),
        _environment(setup.sqlite.environment),
    ):
        calls = asyncio.run(_calls(targets))
    pipeline = artifact.load(setup.artifacts["mp_boost"])
    return [*_prediction(setup, pipeline, calls, over_http), *_message(targets, pipeline, calls, over_http)]


def _prediction(
    setup: Setup, pipeline: Pipeline, calls: Mapping[str, float], over_http: Mapping[str, float]
) -> Iterator[Layer]:
    """Yield the layers of a prediction for one text."""
    validator, settings = BodyValidator(PredictRequest), Settings()
    contents = [to_json({"instances": [{"text": text}]}) for text in setup.texts]
    rankings = [pipeline.rank([text]) for text in setup.texts]
    own = {
        "parse and validate the body": _time(lambda body: validator.read_now(body, settings), contents),
        "terms, scores and ranking": _time(lambda text: pipeline.rank([text]), setup.texts),
        "the response as JSON": _time(
            lambda ranking: to_json(responses.predictions(pipeline.labels_, ranking)), rankings
        ),
    }
    rest = "find the version, limits, choice of loop or thread"
    yield from _rows("predict", own, rest, calls, over_http)


def _message(
    targets: Mapping[str, Target],
    pipeline: Pipeline,
    calls: Mapping[str, float],
    over_http: Mapping[str, float],
) -> Iterator[Layer]:
    """Yield the layers of a message."""
    messages = [
        body.replace(PLACEHOLDER, b"%024d" % n, 1)
        for n, body in enumerate(read_bodies(targets["message"].bodies))
    ]
    texts = [read_message(message).learning_text() for message in messages]
    own = {
        "read the mail": _time(read_message, messages),
        "terms, scores and ranking": _time(lambda text: pipeline.rank([text]), texts),
        f"commit, with {CONCURRENT} messages at once": calls["commit"],
    }
    rest = "find the router, rules, the decision as JSON"
    yield from _rows("message", own, rest, calls, over_http)


def _rows(
    request: str,
    own: Mapping[str, float],
    rest: str,
    calls: Mapping[str, float],
    over_http: Mapping[str, float],
) -> Iterator[Layer]:
    """Yield the layers of a request from the inside to the outside, and their sum."""
    endpoint, application, whole = calls[f"{request} endpoint"], calls[request], over_http[request]
    layers = {
        **own,
        rest: endpoint - sum(own.values()),
        "API key, request id, headers, metrics, log": application - endpoint,
        "uvicorn, httptools and the sockets": whole - application,
        "**together**": whole,
    }
    yield from (Layer(request, name, micros) for name, micros in layers.items())


async def _calls(targets: Mapping[str, Target]) -> dict[str, float]:
    """Return the CPU time of calls of the application and of its endpoints, and of commits."""
    app = create_app(Settings())
    result = {}
    async with app.router.lifespan_context(app):
        for name, endpoint in (("predict", predictions.predict), ("message", routing.route_message)):
            target = targets[name]
            contents = _numbered(read_bodies(target.bodies))

            resource = target.url.split("/")[-2]

            def prepare(target: Target = target, contents: Iterator[bytes] = contents) -> Arguments:
                scope, receive, send = _request(app, target, next(contents))
                scope["state"]["head"] = RequestHead(scope)
                return scope, receive, send

            async def call_endpoint(
                arguments: Arguments, endpoint: Endpoint = endpoint, resource: str = resource
            ) -> None:
                scope, receive, send = arguments
                response = await endpoint(DirectRequest(scope, receive), resource)
                await response(scope, receive, send)

            result[name] = await _time_calls(prepare, lambda arguments: app(*arguments))
            result[f"{name} endpoint"] = await _time_calls(prepare, call_endpoint)
        result["commit"] = await _commits(app)
    return result


async def _commits(app: FastAPI) -> float:
    """Return the CPU time of recording a decision, together with its part of the commit."""
    context: AppContext = app.state.context
    router = app.state.catalog.current or await app.state.catalog.fresh()
    found = router.router(ROUTER)
    assert found is not None
    writer = DecisionWriter(context.db)
    writer.start()
    response = to_json({"ranking": [{"label": f"label{n}", "score": n / 7, "rank": n} for n in range(20)]})
    outcome = RoutingOutcome("fallback", [], ["frontdesk@example.org"])
    message = message_summary(read_message(b""), keep_text=True)
    try:

        def row() -> DecisionRow:
            decision = new_decision(found.name, "m", 1, outcome, message)
            return DecisionRow(decision, found.id, decision.decision_id, response.decode())

        return await _time_calls(row, writer.write)
    finally:
        await writer.stop()


def _request(app: FastAPI, target: Target, body: bytes) -> Arguments:
    """Return the arguments of an ASGI application for a request."""
    parts = urlsplit(target.url)
    fields = {"Host": parts.netloc, **target.headers, "Content-Length": str(len(body))}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 50000),
        "server": (parts.hostname, parts.port),
        "state": {},
        "app": app,
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise LoadError(f"{parts.path} returned {message['status']}")

    return scope, receive, send


def _numbered(contents: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the bodies in turn, each with an id of its own."""
    prefix = secrets.token_hex(4).encode()
    for n in count():
        yield contents[n % len(contents)].replace(PLACEHOLDER, prefix + b"%016d" % n, 1)


async def _time_calls(
    prepare: Callable[[], Argument], call: Callable[[Argument], Awaitable[object]]
) -> float:
    """Return the CPU time of a call in microseconds, in all threads, while others run at the same time.

    Args:
        prepare: returns the argument of one call; its time does not count.
        call: the function.
    """

    async def run(arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            await call(argument)

    times = []
    for repetition in range(REPETITIONS + 1):
        prepared = [prepare() for _ in range(CALLS)]
        began = time.process_time()
        await asyncio.gather(*(run(prepared[n::CONCURRENT]) for n in range(CONCURRENT)))
        if repetition:  # the first one warms up
            times.append((time.process_time() - began) / CALLS)
    return min(times) * 1e6


def _time(function: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    """Return the CPU time of a function in microseconds, for different arguments."""
    times = []
    for repetition in range(REPETITIONS + 1):
        began = time.thread_time()
        for argument in islice(cycle(arguments), CALLS):
            function(argument)
        if repetition:  # the first one warms up
            times.append((time.thread_time() - began) / CALLS)
    return min(times) * 1e6


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the block lasts, so that the settings are those of a service."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
