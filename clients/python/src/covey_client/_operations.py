"""The logic of the client, as coroutines.

``AsyncCovey`` inherits it, and ``Covey`` runs the same coroutines without an event loop.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext, suppress
from typing import Any, ParamSpec, Protocol, TypeVar, cast
from urllib.parse import quote

import httpx

from covey_client._retry import ONCE, STREAM, Retry, RetryTransport
from covey_client._runtime import Runtime
from covey_client._server_sent_events import read_events
from covey_client._version import __version__
from covey_client._work import Work, check, has_ended, progress_of
from covey_client.content import Content, Source
from covey_client.errors import (
    Conflict,
    ConnectionFailed,
    CoveyError,
    PreconditionFailed,
    ServiceUnavailable,
    TooManyRequests,
    UnexpectedResponse,
    WaitTimeout,
)
from covey_client.generated import Client
from covey_client.generated.api.batch_predictions import batch_predictions_create, batch_predictions_get
from covey_client.generated.api.datasets import (
    datasets_create,
    datasets_delete,
    datasets_get,
    datasets_list,
    datasets_list_examples,
    datasets_list_labels,
)
from covey_client.generated.api.decisions import decisions_give_feedback
from covey_client.generated.api.evaluations import evaluations_get
from covey_client.generated.api.experiments import (
    experiments_create,
    experiments_get,
    experiments_get_report,
    experiments_list,
)
from covey_client.generated.api.models import (
    models_get_alias,
    models_list,
    models_list_versions,
    models_predict,
    models_put_alias,
    models_roll_back_alias,
)
from covey_client.generated.api.routers import routers_list, routers_list_decisions, routers_put
from covey_client.generated.api.training_jobs import (
    training_jobs_create,
    training_jobs_get,
    training_jobs_list,
)
from covey_client.generated.models import (
    Alias,
    AliasPut,
    AliasRollback,
    BatchPrediction,
    BatchPredictionCreate,
    Dataset,
    DatasetCreate,
    Decision,
    Disposition,
    Evaluation,
    ExampleItem,
    Experiment,
    ExperimentCreate,
    ExperimentReport,
    Feedback,
    FeedbackState,
    Instance,
    LabelItem,
    Model,
    ModelVersion,
    PredictRequest,
    PredictResponse,
    Problem,
    RecordedDecision,
    Router,
    RouterPut,
    RoutersListDecisionsOrder,
    TrainingJob,
    TrainingJobCreate,
)
from covey_client.generated.types import UNSET, Unset
from covey_client.progress import Progress, Report, ShowProgress, reporting

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Body = TypeVar("Body")

STREAM_SECONDS = 45.0
"""A stream of events that is silent for this time is broken; the service sends something every 15 seconds."""

LONGEST_OUTAGE_SECONDS = 300.0
"""How long a wait continues while the service is not available."""

FIRST_POLL_SECONDS = 0.2
LONGEST_POLL_SECONDS = 2.0
REFRESH_SECONDS = 1.0
"""Time between two states of a bar."""

Document = str | bytes | Instance | Mapping[str, Any]
"""A document to predict for: a text, a raw e-mail message, or an instance as in the API."""


class HasParsed(Protocol[T_co]):
    """A response of the generated client."""

    @property
    def parsed(self) -> T_co | None:
        """The body."""
        raise NotImplementedError


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[T_co]:
        """The items."""
        raise NotImplementedError

    @property
    def next_cursor(self) -> str | Unset:
        """Cursor of the next page."""
        raise NotImplementedError


class Operations:
    """The operations of the service.

    Args:
        url: base URL of the service.
        key: API key; None if the service needs none.
        transport: sends one request.
        runtime: waits and reads files.
        retry: when to send a request again.
        timeout: how long to wait for the service to connect, or to send or receive a part, in seconds.
    """

    def __init__(
        self,
        url: str,
        key: str | None,
        transport: httpx.AsyncBaseTransport,
        runtime: Runtime,
        retry: Retry,
        timeout: float,
    ) -> None:
        headers = {"User-Agent": f"covey-client/{__version__}"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._runtime = runtime
        self._timeout = timeout
        self._transport = RetryTransport(transport, retry, runtime.sleep)
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            timeout=timeout,
            transport=self._transport,
        )
        self.api = Client(base_url=url).set_async_httpx_client(self._http)

    def blocking_api(self, wrap: Callable[[httpx.AsyncBaseTransport], httpx.BaseTransport]) -> Client:
        """Return the generated client for its blocking functions."""
        http = httpx.Client(
            base_url=self._http.base_url,
            headers=self._http.headers,
            timeout=self._http.timeout,
            transport=wrap(self._transport),
        )
        return Client(base_url=str(http.base_url)).set_httpx_client(http)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # Any operation

    async def call(
        self,
        operation: Callable[P, Awaitable[HasParsed[T | Problem]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call an operation of the generated client, with retries and errors as everywhere in this package.

        Args:
            operation: a function such as ``datasets_get.asyncio_detailed``.
            *args: its arguments.
            **kwargs: its keyword arguments; ``client`` is the attribute ``api`` of this object.

        Returns:
            the body of the response; None if it has none.

        Raises:
            CoveyError: there is no response, or it is an error.
        """
        return cast("T", _body(await _read(operation(*args, **kwargs))))

    async def iterate(
        self,
        operation: Callable[P, Awaitable[HasParsed[Page[T] | Problem]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AsyncIterator[T]:
        """Yield the items of all pages of a list. It requests a page when the items before are used up.

        Args:
            operation: a function that lists, such as ``datasets_list.asyncio_detailed``.
            *args: its arguments.
            **kwargs: its keyword arguments; ``limit`` is the size of a page.

        Raises:
            CoveyError: see ``call``.
        """
        list_page = cast("Callable[..., Awaitable[HasParsed[Page[T] | Problem]]]", operation)
        cursor: str | Unset = kwargs.pop("cursor", UNSET)  # type: ignore[assignment]
        while True:
            page = cast("Page[T]", _body(await _read(list_page(*args, **kwargs, cursor=cursor))))
            for item in page.items:
                yield item
            if isinstance(page.next_cursor, Unset):
                return
            cursor = page.next_cursor

    # Data sets

    async def upload(
        self,
        source: Source,
        body: DatasetCreate | Mapping[str, Any] | None = None,
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Dataset:
        """Create a data set and upload its content, which is never in memory as a whole.

        If the upload fails, the data set is deleted.

        Args:
            source: path of a file, or of a folder of mail, which is sent as a zip; bytes; a file that is open
                for reading bytes; examples, which are sent as JSON Lines; or parts of a file, as bytes.
            body: the other fields of the data set, as in the API. The default of `name` is the name of the
                file.
            progress: `True` shows a bar; a function receives each state.
            wait: whether to wait until the content is checked.
            timeout: how long to wait for that, in seconds; None for ever.

        Raises:
            DatasetFailed: the content cannot be used.
            CoveyError: see ``call`` and ``wait``.
        """
        with reporting(progress) as report:
            content = Content(source, self._runtime, lambda sent: report(_uploading(sent, content.total)))
            dataset = await self._create_dataset(content, body)
            try:
                dataset = await self._upload(dataset, content)
            except BaseException:
                with suppress(CoveyError):
                    await self.call(datasets_delete.asyncio_detailed, dataset.id, client=self.api)
                raise
            if not wait:
                return dataset
            return await self._wait(dataset, report, timeout, refresh=False)

    async def _create_dataset(
        self, content: Content, body: DatasetCreate | Mapping[str, Any] | None
    ) -> Dataset:
        fields = _to_dict(body or {})
        if content.name is not None:
            fields.setdefault("name", content.name)
        if content.is_mail_folder:
            fields.setdefault("format", "eml_zip")
        return await self.call(
            datasets_create.asyncio_detailed,
            client=self.api,
            body=_as(DatasetCreate, fields),
            idempotency_key=_new_key(),
        )

    async def _upload(self, dataset: Dataset, content: Content) -> Dataset:
        headers = {"Content-Type": "application/octet-stream"}
        if content.encoding is not None:
            headers["Content-Encoding"] = content.encoding
        if content.size is not None:
            headers["Content-Length"] = str(content.size)
        request = self._http.build_request(
            "PUT",
            f"/v1/datasets/{quote(dataset.id, safe='')}/content",
            content=content,
            headers=headers,
            extensions={ONCE: lambda: content.is_consumed, "timeout": self._http.timeout.as_dict()},
        )
        try:
            response = await self._http.send(request)
        except Conflict as error:
            if error.attempts == 1 or error.code != "dataset_has_content":
                raise
            return await self.get_dataset(dataset.id)  # an earlier attempt has arrived
        return _parse(Dataset, response)

    async def get_dataset(self, dataset_id: str) -> Dataset:
        """Get a data set."""
        return await self.call(datasets_get.asyncio_detailed, dataset_id, client=self.api)

    def datasets(self) -> AsyncIterator[Dataset]:
        """Yield all data sets, newest first."""
        return self.iterate(datasets_list.asyncio_detailed, client=self.api, limit=MAX_LIMIT)

    def examples(self, dataset_id: str) -> AsyncIterator[ExampleItem]:
        """Yield the examples of a data set."""
        return self.iterate(
            datasets_list_examples.asyncio_detailed, dataset_id, client=self.api, limit=MAX_LIMIT
        )

    def labels(self, dataset_id: str) -> AsyncIterator[LabelItem]:
        """Yield the labels of a data set."""
        return self.iterate(
            datasets_list_labels.asyncio_detailed, dataset_id, client=self.api, limit=MAX_LIMIT
        )

    # Jobs

    async def train(
        self,
        body: TrainingJobCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> TrainingJob:
        """Train a new version of a model.

        Args:
            body: the training, as in the API.
            progress: see ``upload``.
            wait: whether to wait until the job has ended.
            timeout: see ``wait``.
            idempotency_key: makes repeated calls with the same body one job; by default, only the attempts
                of this call.

        Raises:
            CoveyError: see ``call`` and ``wait``.
        """
        job = await self.call(
            training_jobs_create.asyncio_detailed,
            client=self.api,
            body=_as(TrainingJobCreate, body),
            idempotency_key=idempotency_key or _new_key(),
        )
        return await self.wait(job, progress=progress, timeout=timeout) if wait else job

    async def run_experiment(
        self,
        body: ExperimentCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Experiment:
        """Compare learners on a data set. The arguments are those of ``train``."""
        experiment = await self.call(
            experiments_create.asyncio_detailed,
            client=self.api,
            body=_as(ExperimentCreate, body),
            idempotency_key=idempotency_key or _new_key(),
        )
        return await self.wait(experiment, progress=progress, timeout=timeout) if wait else experiment

    async def predict_batch(
        self,
        body: BatchPredictionCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> BatchPrediction:
        """Predict for a whole data set. The arguments are those of ``train``."""
        batch = await self.call(
            batch_predictions_create.asyncio_detailed,
            client=self.api,
            body=_as(BatchPredictionCreate, body),
            idempotency_key=idempotency_key or _new_key(),
        )
        return await self.wait(batch, progress=progress, timeout=timeout) if wait else batch

    async def wait(self, work: Work, *, progress: ShowProgress = False, timeout: float | None = None) -> Work:
        """Wait until a data set, job, experiment, evaluation or batch prediction has ended, and return it.

        It follows the event stream of a training job, and asks again and again if there is none. It
        continues if the service is not available for up to five minutes.

        Args:
            work: what to wait for.
            progress: see ``upload``. A function may be called in another thread.
            timeout: how long to wait, in seconds; None for ever.

        Raises:
            WorkFailed: the work failed.
            WorkCancelled: the work was cancelled.
            WaitTimeout: the work has not ended in time; it continues.
            CoveyError: see ``call``.
        """
        with reporting(progress) as report:
            return await self._wait(work, report, timeout, refresh=progress is not False)

    async def get_training_job(self, job_id: str) -> TrainingJob:
        """Get a training job."""
        return await self.call(training_jobs_get.asyncio_detailed, job_id, client=self.api)

    def training_jobs(self) -> AsyncIterator[TrainingJob]:
        """Yield all training jobs, newest first."""
        return self.iterate(training_jobs_list.asyncio_detailed, client=self.api, limit=MAX_LIMIT)

    async def get_experiment(self, experiment_id: str) -> Experiment:
        """Get an experiment."""
        return await self.call(experiments_get.asyncio_detailed, experiment_id, client=self.api)

    async def get_report(self, experiment_id: str) -> ExperimentReport:
        """Get the results of an experiment."""
        return await self.call(experiments_get_report.asyncio_detailed, experiment_id, client=self.api)

    def experiments(self) -> AsyncIterator[Experiment]:
        """Yield all experiments, newest first."""
        return self.iterate(experiments_list.asyncio_detailed, client=self.api, limit=MAX_LIMIT)

    # Models

    async def predict(
        self,
        model: str,
        documents: Iterable[Document],
        *,
        version: int | str = "live",
        top: int | None = None,
        explain: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> PredictResponse:
        """Predict the labels of documents.

        Args:
            model: name of the model.
            documents: texts, raw e-mail messages as bytes, or instances as in the API.
            version: number or alias of the version.
            top: length of each ranking; by default, every label is ranked.
            explain: whether to return the terms that contribute most.
            thresholds: thresholds that replace those of the version.

        Raises:
            CoveyError: see ``call``.
        """
        body: dict[str, Any] = {
            "instances": [_instance(document) for document in documents],
            "version": version,
            "explain": explain,
        }
        if top is not None:
            body["top"] = top
        if thresholds is not None:
            body["thresholds"] = dict(thresholds)
        return await self.call(
            models_predict.asyncio_detailed, model, client=self.api, body=_as(PredictRequest, body)
        )

    async def get_alias(self, model: str, alias: str = "live") -> Alias:
        """Get an alias, with the revision on which ``promote`` can depend."""
        return await self.call(models_get_alias.asyncio_detailed, model, alias, client=self.api)

    async def promote(
        self, model: str, version: int, alias: str = "live", *, if_unchanged: Alias | None = None
    ) -> Alias:
        """Set an alias of a model to a version.

        Args:
            model: name of the model.
            version: number of the version.
            alias: name of the alias.
            if_unchanged: the alias as you know it (`If-Match`); by default, it is moved in any case.

        Raises:
            PreconditionFailed: somebody else has changed the alias.
            CoveyError: see ``call``.
        """
        try:
            return await self.call(
                models_put_alias.asyncio_detailed,
                model,
                alias,
                client=self.api,
                body=AliasPut(version=version),
                if_match=_etag(if_unchanged),
            )
        except PreconditionFailed as error:
            return await self._moved_before(error, model, alias, version, if_unchanged)

    async def roll_back(
        self,
        model: str,
        alias: str = "live",
        *,
        to_version: int | None = None,
        if_unchanged: Alias | None = None,
    ) -> Alias:
        """Set an alias of a model back to an earlier version, once.

        Args:
            model: name of the model.
            alias: name of the alias.
            to_version: number of the version; by default, the one before the current one.
            if_unchanged: see ``promote``; by default, the alias as it is now, so that a repeated attempt
                does not go back twice.

        Raises:
            PreconditionFailed: somebody else has changed the alias, or the response to the first attempt was
                lost. Get the alias to see which.
            CoveyError: see ``call``.
        """
        known = if_unchanged or await self.get_alias(model, alias)
        try:
            return await self.call(
                models_roll_back_alias.asyncio_detailed,
                model,
                alias,
                client=self.api,
                body=AliasRollback(to_version=to_version) if to_version is not None else AliasRollback(),
                if_match=_etag(known),
            )
        except PreconditionFailed as error:
            return await self._moved_before(error, model, alias, to_version, known)

    async def _moved_before(
        self,
        error: PreconditionFailed,
        model: str,
        alias: str,
        version: int | None,
        known: Alias | None,
    ) -> Alias:
        """Return the alias if an earlier attempt, whose response was lost, has moved it."""
        if error.attempts > 1 and known is not None and version is not None:
            now = await self.get_alias(model, alias)
            if (now.version, now.revision) == (version, known.revision + 1):
                return now
        raise error

    def models(self) -> AsyncIterator[Model]:
        """Yield all models."""
        return self.iterate(models_list.asyncio_detailed, client=self.api, limit=MAX_LIMIT)

    def versions(self, model: str) -> AsyncIterator[ModelVersion]:
        """Yield the versions of a model."""
        return self.iterate(models_list_versions.asyncio_detailed, model, client=self.api, limit=MAX_LIMIT)

    # Routers

    async def put_router(self, name: str, body: RouterPut | Mapping[str, Any]) -> Router:
        """Create or replace a router."""
        return await self.call(routers_put.asyncio_detailed, name, client=self.api, body=_as(RouterPut, body))

    async def route(self, router: str, message: bytes, *, explain: bool = False) -> Decision:
        """Route a raw message (RFC 5322), and return the recorded decision.

        A message that was routed before gets its first decision. A program for a mail server uses ``Router``
        instead, which has one error for everything that prevents a decision.

        Args:
            router: name of the router.
            message: the message.
            explain: whether to return the terms that contribute most.

        Raises:
            CoveyError: see ``call``.
        """
        response = await self._http.post(
            f"/v1/routers/{quote(router, safe='')}/messages",
            params={"explain": "true"} if explain else {},
            content=message,
            headers={"Content-Type": "message/rfc822"},
        )
        if response.status_code != httpx.codes.OK:
            raise UnexpectedResponse(f"{response.url} returned {response.status_code}, not a decision")
        return _parse(Decision, response)

    async def feedback(
        self,
        decision: Decision | RecordedDecision | str,
        labels: Iterable[str],
        *,
        allow_new_labels: bool = False,
    ) -> RecordedDecision:
        """Submit the correct labels of a message.

        Args:
            decision: the decision or its id.
            labels: the correct labels; none if no department is correct.
            allow_new_labels: whether labels may be new.

        Raises:
            InvalidRequest: a label is unknown, probably misspelt.
            CoveyError: see ``call``.
        """
        return await self.call(
            decisions_give_feedback.asyncio_detailed,
            decision if isinstance(decision, str) else decision.decision_id,
            client=self.api,
            body=Feedback(labels=list(labels), allow_new_labels=allow_new_labels),
        )

    def decisions(self, router: str, **conditions: Any) -> AsyncIterator[RecordedDecision]:
        """Yield the decisions of a router, newest first.

        Args:
            router: name of the router.
            **conditions: query parameters of the API, such as ``disposition="review"``; write ``from_`` for
                ``from``.
        """
        for name, values in _CONDITIONS.items():
            if isinstance(conditions.get(name), str):
                conditions[name] = values(conditions[name])
        return self.iterate(
            routers_list_decisions.asyncio_detailed,
            router,
            client=self.api,
            **{"limit": MAX_LIMIT, **conditions},
        )

    def routers(self) -> AsyncIterator[Router]:
        """Yield all routers."""
        return self.iterate(routers_list.asyncio_detailed, client=self.api, limit=MAX_LIMIT)

    # Waiting

    async def _wait(self, work: Work, report: Report, timeout: float | None, *, refresh: bool) -> Work:
        deadline = None if timeout is None else time.monotonic() + timeout

        async def show() -> None:
            with suppress(CoveyError):  # only for show; the wait itself finds out
                report(progress_of(await self._get(work)))

        current = await self._get(work)
        report(progress_of(current))
        if isinstance(current, TrainingJob) and not has_ended(current):
            shown = self._runtime.repeating(REFRESH_SECONDS, show) if refresh else nullcontext()
            async with shown:
                await self._follow(current.id, report, deadline)
        current = await self._poll(work, report, deadline)
        check(current)
        return current

    async def _follow(self, job_id: str, report: Report, deadline: float | None) -> None:
        """Read the events of a job until it ends, or until there is no stream or little time left."""
        last_id = ""
        while _has_time(deadline):
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
            request = self._http.build_request(
                "GET",
                f"/v1/training-jobs/{quote(job_id, safe='')}/events",
                headers=headers,
                timeout=httpx.Timeout(self._timeout, read=STREAM_SECONDS),
            )
            request.extensions = {**request.extensions, STREAM: True}
            try:
                response = await self._http.send(request, stream=True)
            except CoveyError:
                return
            before = last_id
            try:
                if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    return
                lines = _while_time(response.aiter_lines(), deadline)
                async with aclosing(read_events(lines)) as events:
                    async for event in events:
                        last_id = event.id or last_id
                        if _report_event(event.data, report):
                            return
            except (httpx.HTTPError, httpx.StreamError):
                pass  # a broken connection, or a service that restarts: continue after the last event
            finally:
                await response.aclose()
            if last_id == before:  # a stream that brings nothing new, such as that of a proxy
                return

    async def _poll(self, work: Work, report: Report, deadline: float | None) -> Work:
        seconds = FIRST_POLL_SECONDS
        available_at = time.monotonic()
        while True:
            try:
                current = await self._get(work)
                available_at = time.monotonic()
                report(progress_of(current))
                if has_ended(current):
                    return current
            except (ConnectionFailed, ServiceUnavailable, TooManyRequests):
                if time.monotonic() - available_at > LONGEST_OUTAGE_SECONDS:
                    raise
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WaitTimeout(f"{work.id} has not ended in time")
                seconds = min(seconds, left)
            await self._runtime.sleep(seconds)
            seconds = min(1.5 * seconds, LONGEST_POLL_SECONDS)

    async def _get(self, work: Work) -> Work:
        current: Dataset | TrainingJob | Experiment | Evaluation | BatchPrediction
        if isinstance(work, Dataset):
            current = await self.get_dataset(work.id)
        elif isinstance(work, TrainingJob):
            current = await self.get_training_job(work.id)
        elif isinstance(work, Experiment):
            current = await self.get_experiment(work.id)
        elif isinstance(work, Evaluation):
            current = await self.call(
                evaluations_get.asyncio_detailed, work.model, work.version, work.id, client=self.api
            )
        else:
            current = await self.call(batch_predictions_get.asyncio_detailed, work.id, client=self.api)
        return cast("Work", current)


MAX_LIMIT = 500
"""Size of the pages of lists."""

_CONDITIONS: Mapping[str, Callable[[str], Any]] = {
    "disposition": Disposition,
    "feedback": FeedbackState,
    "order": RoutersListDecisionsOrder,
}


class _Fields:
    """A body that the caller wrote as in the API. The service checks it, and names what is wrong."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return dict(self._fields)


def _as(_kind: type[Body], body: Body | Mapping[str, Any]) -> Body:
    return cast("Body", _Fields(_to_dict(body))) if isinstance(body, Mapping) else body


def _to_dict(value: Any) -> Any:
    """Return a body as JSON. Its fields can be objects of the generated client."""
    if isinstance(value, Mapping):
        return {name: _to_dict(field) for name, field in value.items()}
    if isinstance(value, list | tuple):
        return [_to_dict(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def _instance(document: Document) -> dict[str, Any]:
    """Return a document as the API expects it.

    >>> _instance("Where is my parcel?"), _instance(b"Subject: Parcel")
    ({'text': 'Where is my parcel?'}, {'raw_email': 'U3ViamVjdDogUGFyY2Vs'})
    """
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, bytes):
        return {"raw_email": base64.b64encode(document).decode()}
    fields: dict[str, Any] = _to_dict(document)
    return fields


def _new_key() -> str:
    return str(uuid.uuid4())


def _etag(alias: Alias | None) -> str | Unset:
    return UNSET if alias is None else f'"{alias.revision}"'


def _uploading(sent: int, total: int | None) -> Progress:
    return Progress("uploading", sent, total, "bytes")


def _report_event(data: str, report: Report) -> bool:
    """Report the phase of a job's event. Return whether the job has ended."""
    try:
        event = json.loads(data)
        type_, detail = event["type"], event["detail"]
        if type_ == "phase":
            report(Progress(detail["phase"], detail["completed"], detail.get("total"), detail["unit"]))
    except (ValueError, KeyError, TypeError):
        return False
    return type_ in ("succeeded", "failed", "cancelled")


def _has_time(deadline: float | None) -> bool:
    """Whether the next keep-alive of a stream arrives well before the deadline."""
    return deadline is None or deadline - time.monotonic() > STREAM_SECONDS / 2


async def _while_time(lines: AsyncIterator[str], deadline: float | None) -> AsyncGenerator[str]:
    async for line in lines:
        if not _has_time(deadline):
            return
        yield line


async def _read(response: Awaitable[HasParsed[T]]) -> HasParsed[T]:
    try:
        return await response
    except (ValueError, KeyError) as error:
        raise UnexpectedResponse(
            f"the response is not what this package expects, or the request is no valid JSON: {error!r}"
        ) from error


def _body(response: HasParsed[T]) -> T | None:
    return response.parsed


def _parse(kind: type[T], response: httpx.Response) -> T:
    try:
        parsed: T = kind.from_dict(response.json())  # type: ignore[attr-defined]
    except (ValueError, KeyError, TypeError) as error:
        raise UnexpectedResponse(f"{response.url} returned no {kind.__name__}: {error!r}") from error
    return parsed
