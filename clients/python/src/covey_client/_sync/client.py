# Generated from _async/client.py by unasync.py. Change that file instead.
"""The client for programs with blocking calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast
from urllib.parse import quote

import httpx

from covey_client._bodies import (
    MAX_LIMIT,
    Document,
    Page,
    body_of,
    etag_of,
    instance_of,
    json_of,
    new_key,
    require_list,
    uploading,
)
from covey_client._parsing import HasParsed, message_of, parse, require_status
from covey_client._retry import AT_ONCE, ONCE, RETRY, Retry
from covey_client._runtime import BlockingRuntime
from covey_client._settings import TIMEOUT_SECONDS, get_key, get_url
from covey_client._sync.calls import respond
from covey_client._sync.download import Download
from covey_client._sync.retry_transport import RetryTransport
from covey_client._sync.waiting import Waiter
from covey_client._version import __version__
from covey_client._work import Cancellable, Deletable, Work, path_of
from covey_client.content import Body, Content, Source
from covey_client.errors import (
    Conflict,
    CoveyError,
    PreconditionFailed,
)
from covey_client.generated import Client
from covey_client.generated.api.batch_predictions import batch_predictions_create
from covey_client.generated.api.datasets import (
    datasets_create,
    datasets_get,
    datasets_list,
    datasets_list_examples,
    datasets_list_labels,
    datasets_update,
)
from covey_client.generated.api.decisions import decisions_get, decisions_give_feedback
from covey_client.generated.api.evaluations import evaluations_create
from covey_client.generated.api.experiments import (
    experiments_create,
    experiments_get,
    experiments_get_report,
    experiments_list,
)
from covey_client.generated.api.models import (
    models_get,
    models_get_alias,
    models_get_version,
    models_list,
    models_list_versions,
    models_predict,
    models_put_alias,
    models_roll_back_alias,
)
from covey_client.generated.api.routers import (
    routers_get,
    routers_get_report,
    routers_list,
    routers_list_decisions,
    routers_put,
)
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
    DatasetPatch,
    Decision,
    Evaluation,
    EvaluationCreate,
    ExampleItem,
    Experiment,
    ExperimentCreate,
    ExperimentReport,
    Feedback,
    LabelItem,
    Model,
    ModelVersion,
    PredictRequest,
    PredictResponse,
    Problem,
    RecordedDecision,
    Router,
    RouterPut,
    RouterReport,
    TrainingJob,
    TrainingJobCreate,
)
from covey_client.progress import ShowProgress, reporting

P = ParamSpec("P")
T = TypeVar("T")

DELETE_SECONDS = 5.0
"""How long the client tries to delete the data set of a failed upload."""


class Covey:
    """A client of the service. Several threads can use it.

    >>> from covey_client import Covey
    >>> with Covey() as covey:
    ...     dataset = covey.upload("helpdesk.jsonl")
    ...     job = covey.train(
    ...         {"model": "docs", "dataset_id": dataset.id, "learner": {"algorithm": "mmp"}}, timeout=600
    ...     )
    ...     answer = covey.predict("docs", ["The courier says the parcel is late."], top=1)
    >>> job.state, answer.predictions[0].labels
    ('succeeded', ['shipping'])

    Args:
        url: base URL of the service; by default that of `COVEY_URL`, or `http://127.0.0.1:8000`.
        key: API key; by default that of `COVEY_API_KEY`.
        timeout: how long to wait for the service to connect, or to send or receive a part, in seconds.
        retry: when to send a request again.
        transport: sends the requests; for example with other certificates or by a proxy. The variables for
            proxies in the environment are not used.

    Attributes:
        api: the generated client, for ``call`` and ``iterate``.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry: Retry | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url, key = get_url(url), get_key(key)
        headers = {"User-Agent": f"covey-client/{__version__}"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._runtime = BlockingRuntime()
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=timeout,
            transport=RetryTransport(
                transport or httpx.HTTPTransport(), retry or Retry(), self._runtime.sleep
            ),
        )
        self._waiter = Waiter(self._http, self._runtime, timeout)
        self.api = Client(base_url=url, raise_on_unexpected_status=True).set_httpx_client(self._http)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Any operation

    def call(
        self,
        operation: Callable[P, HasParsed[T | Problem]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call an operation of the generated client, with retries and errors as everywhere in this package.

        Args:
            operation: a function such as ``datasets_get.sync_detailed``.
            *args: its arguments.
            **kwargs: its keyword arguments; ``client`` is the attribute ``api`` of this object.

        Returns:
            the body of the response; None if it has none.

        Raises:
            CoveyError: there is no response, or it is an error.
        """
        return cast("T", respond(operation, *args, **kwargs))

    def iterate(
        self,
        operation: Callable[P, HasParsed[Page[T] | Problem]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Iterator[T]:
        """Yield the items of all pages of a list. It requests a page when the items before are used up.

        Args:
            operation: a function that lists, such as ``datasets_list.sync_detailed``.
            *args: its arguments.
            **kwargs: its keyword arguments; ``limit`` is the size of a page.

        Raises:
            CoveyError: see ``call``.
        """
        list_page = cast("Callable[..., HasParsed[Page[T] | Problem]]", operation)
        cursor: str | None = kwargs.pop("cursor", None)  # type: ignore[assignment]
        while True:
            page = cast("Page[T]", respond(list_page, *args, **kwargs, cursor=cursor))
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    # Data sets

    def upload(
        self,
        source: Source,
        body: DatasetCreate | Mapping[str, Any] | None = None,
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Dataset:
        """Create a data set and upload its content, which is never in memory as a whole.

        If the upload fails, the data set is deleted, unless the service cannot be reached.

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
            content = Content(source, lambda sent: report(uploading(sent, content.total)))
            dataset = self._create_dataset(content, body)
            try:
                dataset = self._upload(dataset, content)
            except BaseException:
                self._delete_at_once(dataset)
                raise
            if not wait:
                return dataset
            return self._waiter.wait(dataset, report, timeout, refresh=False)

    def _create_dataset(self, content: Content, body: DatasetCreate | Mapping[str, Any] | None) -> Dataset:
        fields = json_of(body or {})
        if content.name is not None:
            fields.setdefault("name", content.name)
        if content.is_mail_folder:
            fields.setdefault("format", "eml_zip")
        return self.call(
            datasets_create.sync_detailed,
            client=self.api,
            body=body_of(DatasetCreate, fields),
            idempotency_key=new_key(),
        )

    def _upload(self, dataset: Dataset, content: Content) -> Dataset:
        headers = {"Content-Type": "application/octet-stream"}
        if content.encoding is not None:
            headers["Content-Encoding"] = content.encoding
        if content.size is not None:
            headers["Content-Length"] = str(content.size)
        request = self._http.build_request(
            "PUT",
            f"/v1/datasets/{quote(dataset.id, safe='')}/content",
            content=Body(content, self._runtime),
            headers=headers,
            extensions={ONCE: lambda: content.is_consumed, "timeout": self._http.timeout.as_dict()},
        )
        try:
            response = self._http.send(request)
        except Conflict as error:
            if error.attempts == 1 or error.code != "dataset_has_content":
                raise
            return self.get_dataset(dataset.id)  # an earlier attempt has arrived
        return parse(Dataset, response, httpx.codes.ACCEPTED)

    def _delete_at_once(self, dataset: Dataset) -> None:
        request = self._http.build_request("DELETE", path_of(dataset), timeout=DELETE_SECONDS)
        request.extensions = {**request.extensions, RETRY: AT_ONCE}
        with self._runtime.uncancelled(), suppress(CoveyError):
            self._http.send(request)

    def create_dataset(
        self,
        body: DatasetCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Create a data set without an upload, from other data sets or from feedback.

        The arguments are those of ``train``.
        """
        with reporting(progress) as report:
            dataset = self.call(
                datasets_create.sync_detailed,
                client=self.api,
                body=body_of(DatasetCreate, body),
                idempotency_key=idempotency_key or new_key(),
            )
            if not wait:
                return dataset
            return self._waiter.wait(dataset, report, timeout, refresh=False)

    def from_feedback(
        self,
        router: str,
        name: str,
        *,
        and_dataset: Dataset | str | None = None,
        progress: ShowProgress = False,
        timeout: float | None = None,
    ) -> Dataset:
        """Create a data set from the kept messages of a router that have feedback.

        Args:
            router: name of the router.
            name: name of the data set.
            and_dataset: a data set, or its id, whose examples come first.
            progress: see ``upload``.
            timeout: see ``wait``.

        Raises:
            DatasetFailed: no message has feedback, or none is kept.
            CoveyError: see ``call`` and ``wait``.
        """
        body: dict[str, Any] = {"name": name, "from_feedback": {"router": router}}
        if and_dataset is not None:
            body["and_dataset"] = and_dataset.id if isinstance(and_dataset, Dataset) else and_dataset
        return self.create_dataset(body, progress=progress, timeout=timeout)

    def delete(self, resource: Deletable) -> None:
        """Delete a data set, model, version, alias, router or decision.

        Raises:
            Conflict: something else uses it.
            CoveyError: see ``call``.
        """
        require_status(self._http.delete(path_of(resource)), httpx.codes.NO_CONTENT)

    def update_dataset(self, dataset_id: str, body: DatasetPatch | Mapping[str, Any]) -> Dataset:
        """Change the name or the description of a data set; `{"description": None}` removes it."""
        return self.call(
            datasets_update.sync_detailed, dataset_id, client=self.api, body=body_of(DatasetPatch, body)
        )

    def get_dataset(self, dataset_id: str) -> Dataset:
        """Get a data set."""
        return self.call(datasets_get.sync_detailed, dataset_id, client=self.api)

    def datasets(self) -> Iterator[Dataset]:
        """Yield all data sets, newest first."""
        return self.iterate(datasets_list.sync_detailed, client=self.api, limit=MAX_LIMIT)

    def examples(self, dataset_id: str) -> Iterator[ExampleItem]:
        """Yield the examples of a data set."""
        return self.iterate(
            datasets_list_examples.sync_detailed, dataset_id, client=self.api, limit=MAX_LIMIT
        )

    def labels(self, dataset_id: str) -> Iterator[LabelItem]:
        """Yield the labels of a data set."""
        return self.iterate(datasets_list_labels.sync_detailed, dataset_id, client=self.api, limit=MAX_LIMIT)

    # Jobs

    def train(
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
        with reporting(progress) as report:
            job = self.call(
                training_jobs_create.sync_detailed,
                client=self.api,
                body=body_of(TrainingJobCreate, body),
                idempotency_key=idempotency_key or new_key(),
            )
            if not wait:
                return job
            return self._waiter.wait(job, report, timeout, refresh=progress is not False)

    def run_experiment(
        self,
        body: ExperimentCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Experiment:
        """Compare learners on a data set. The arguments are those of ``train``."""
        with reporting(progress) as report:
            experiment = self.call(
                experiments_create.sync_detailed,
                client=self.api,
                body=body_of(ExperimentCreate, body),
                idempotency_key=idempotency_key or new_key(),
            )
            if not wait:
                return experiment
            return self._waiter.wait(experiment, report, timeout, refresh=progress is not False)

    def predict_batch(
        self,
        body: BatchPredictionCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> BatchPrediction:
        """Predict for a whole data set. The arguments are those of ``train``."""
        with reporting(progress) as report:
            batch = self.call(
                batch_predictions_create.sync_detailed,
                client=self.api,
                body=body_of(BatchPredictionCreate, body),
                idempotency_key=idempotency_key or new_key(),
            )
            if not wait:
                return batch
            return self._waiter.wait(batch, report, timeout, refresh=progress is not False)

    def wait(self, work: Work, *, progress: ShowProgress = False, timeout: float | None = None) -> Work:
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
            return self._waiter.wait(work, report, timeout, refresh=progress is not False)

    def cancel(self, work: Cancellable) -> Cancellable:
        """Cancel a training job, experiment or batch prediction, and return its state.

        Something that runs stops a little later; ``wait`` then raises `WorkCancelled`.

        Raises:
            Conflict: it has already ended.
            CoveyError: see ``call``.
        """
        response = self._http.post(f"{path_of(work)}/cancel")
        return parse(type(work), response, httpx.codes.ACCEPTED)

    def download(
        self,
        source: BatchPrediction | ModelVersion,
        path: str | PathLike[str],
        *,
        progress: ShowProgress = False,
    ) -> Path:
        """Download the result of a batch prediction, or the artifact of a version, and return the path.

        The file appears when it is complete, and is never in memory as a whole. If the connection breaks, the
        download continues.

        Args:
            source: a batch prediction that has succeeded, or a version.
            path: path of the file; an existing file is replaced.
            progress: see ``upload``.

        Raises:
            CoveyError: see ``call``.
        """
        url = f"{path_of(source)}/{'result' if isinstance(source, BatchPrediction) else 'artifact'}"
        with reporting(progress) as report:
            Download(self._http, self._runtime, url, Path(path), report).run()
        return Path(path)

    def get_training_job(self, job_id: str) -> TrainingJob:
        """Get a training job."""
        return self.call(training_jobs_get.sync_detailed, job_id, client=self.api)

    def training_jobs(self) -> Iterator[TrainingJob]:
        """Yield all training jobs, newest first."""
        return self.iterate(training_jobs_list.sync_detailed, client=self.api, limit=MAX_LIMIT)

    def get_experiment(self, experiment_id: str) -> Experiment:
        """Get an experiment."""
        return self.call(experiments_get.sync_detailed, experiment_id, client=self.api)

    def get_report(self, experiment_id: str) -> ExperimentReport:
        """Get the results of an experiment."""
        return self.call(experiments_get_report.sync_detailed, experiment_id, client=self.api)

    def experiments(self) -> Iterator[Experiment]:
        """Yield all experiments, newest first."""
        return self.iterate(experiments_list.sync_detailed, client=self.api, limit=MAX_LIMIT)

    # Models

    def get_model(self, model: str) -> Model:
        """Get a model."""
        return self.call(models_get.sync_detailed, model, client=self.api)

    def get_version(self, model: str, version: int) -> ModelVersion:
        """Get a version of a model, with its measures."""
        return self.call(models_get_version.sync_detailed, model, version, client=self.api)

    def evaluate(
        self,
        version: ModelVersion,
        body: EvaluationCreate | Mapping[str, Any],
        *,
        progress: ShowProgress = False,
        wait: bool = True,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Evaluation:
        """Evaluate a version on a data set. The other arguments are those of ``train``."""
        with reporting(progress) as report:
            evaluation = self.call(
                evaluations_create.sync_detailed,
                version.model,
                version.version,
                client=self.api,
                body=body_of(EvaluationCreate, body),
                idempotency_key=idempotency_key or new_key(),
            )
            if not wait:
                return evaluation
            return self._waiter.wait(evaluation, report, timeout, refresh=False)

    def predict(
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
        require_list(documents, "documents")
        body: dict[str, Any] = {
            "instances": [instance_of(document) for document in documents],
            "version": version,
            "explain": explain,
        }
        if top is not None:
            body["top"] = top
        if thresholds is not None:
            body["thresholds"] = dict(thresholds)
        return self.call(
            models_predict.sync_detailed, model, client=self.api, body=body_of(PredictRequest, body)
        )

    def get_alias(self, model: str, alias: str = "live") -> Alias:
        """Get an alias, with the revision on which ``promote`` can depend."""
        return self.call(models_get_alias.sync_detailed, model, alias, client=self.api)

    def promote(
        self, model: str, version: int, alias: str = "live", *, if_unchanged: Alias | None = None
    ) -> Alias:
        """Set an alias of a model to a version.

        Args:
            model: name of the model.
            version: number of the version.
            alias: name of the alias.
            if_unchanged: the alias as you know it (`If-Match`); by default, it is moved in any case.

        Raises:
            PreconditionFailed: the alias has changed.
            CoveyError: see ``call``.
        """
        try:
            return self.call(
                models_put_alias.sync_detailed,
                model,
                alias,
                client=self.api,
                body=AliasPut(version=version),
                if_match=etag_of(if_unchanged),
            )
        except PreconditionFailed as error:
            return self._moved_before(error, model, alias, version, if_unchanged)

    def roll_back(
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
            PreconditionFailed: the alias has changed, or the response to the first attempt was
                lost. Get the alias to see which.
            CoveyError: see ``call``.
        """
        known = if_unchanged or self.get_alias(model, alias)
        try:
            return self.call(
                models_roll_back_alias.sync_detailed,
                model,
                alias,
                client=self.api,
                body=AliasRollback(to_version=to_version),
                if_match=etag_of(known),
            )
        except PreconditionFailed as error:
            return self._moved_before(error, model, alias, to_version, known)

    def _moved_before(
        self,
        error: PreconditionFailed,
        model: str,
        alias: str,
        version: int | None,
        known: Alias | None,
    ) -> Alias:
        """Return the alias if an earlier attempt, whose response was lost, has moved it."""
        if error.attempts > 1 and known is not None and version is not None:
            now = self.get_alias(model, alias)
            if (now.version, now.revision) == (version, known.revision + 1):
                return now
        raise error

    def models(self) -> Iterator[Model]:
        """Yield all models."""
        return self.iterate(models_list.sync_detailed, client=self.api, limit=MAX_LIMIT)

    def versions(self, model: str) -> Iterator[ModelVersion]:
        """Yield the versions of a model."""
        return self.iterate(models_list_versions.sync_detailed, model, client=self.api, limit=MAX_LIMIT)

    # Routers

    def put_router(self, name: str, body: RouterPut | Mapping[str, Any]) -> Router:
        """Create or replace a router."""
        return self.call(routers_put.sync_detailed, name, client=self.api, body=body_of(RouterPut, body))

    def get_router(self, name: str) -> Router:
        """Get a router."""
        return self.call(routers_get.sync_detailed, name, client=self.api)

    def get_router_report(self, name: str) -> RouterReport:
        """Get how well a router does, by feedback."""
        return self.call(routers_get_report.sync_detailed, name, client=self.api)

    def route(self, router: str, message: bytes, *, explain: bool = False) -> Decision:
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
        if not isinstance(message, bytes):
            raise TypeError('the message must be bytes; read its file with the mode "rb"')
        response = self._http.post(
            f"/v1/routers/{quote(router, safe='')}/messages",
            params={"explain": "true"} if explain else {},
            content=message,
            headers={"Content-Type": "message/rfc822"},
        )
        return parse(Decision, response, httpx.codes.OK)

    def feedback(
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
        require_list(labels, "labels")
        return self.call(
            decisions_give_feedback.sync_detailed,
            decision if isinstance(decision, str) else decision.decision_id,
            client=self.api,
            body=Feedback(labels=list(labels), allow_new_labels=allow_new_labels),
        )

    def decisions(self, router: str, **conditions: Any) -> Iterator[RecordedDecision]:
        """Yield the decisions of a router, newest first.

        Args:
            router: name of the router.
            **conditions: query parameters of the API, such as ``disposition="review"``; write ``from_`` for
                ``from``.
        """
        return self.iterate(
            routers_list_decisions.sync_detailed,
            router,
            client=self.api,
            **{"limit": MAX_LIMIT, **conditions},
        )

    def review_queue(self, router: str) -> Iterator[RecordedDecision]:
        """Yield the decisions of a router that a person should review, the oldest first.

        Submit the correct labels with ``feedback``; ``get_message`` returns the message.
        """
        return self.decisions(router, review="any", feedback="none", order="oldest_first")

    def get_decision(self, decision_id: str) -> RecordedDecision:
        """Get a decision."""
        return self.call(decisions_get.sync_detailed, decision_id, client=self.api)

    def get_message(self, decision: Decision | RecordedDecision) -> bytes | dict[str, Any]:
        """Get the kept message of a decision as it was sent: raw, or an object with `email`.

        Raises:
            NotFound: the message is not kept.
            CoveyError: see ``call``.
        """
        return message_of(self._http.get(f"{path_of(decision)}/message"))

    def routers(self) -> Iterator[Router]:
        """Yield all routers."""
        return self.iterate(routers_list.sync_detailed, client=self.api, limit=MAX_LIMIT)
