"""The client for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import httpx

from covey_client._operations import Document, Operations, Page
from covey_client._parsing import HasParsed
from covey_client._retry import Retry
from covey_client._runtime import BlockingRuntime, BlockingTransport, RunTransport, iterate, run
from covey_client._settings import TIMEOUT_SECONDS, get_key, get_url
from covey_client._work import Cancellable, Work
from covey_client.content import Source
from covey_client.generated.models import (
    Alias,
    BatchPrediction,
    BatchPredictionCreate,
    Dataset,
    DatasetCreate,
    Decision,
    ExampleItem,
    Experiment,
    ExperimentCreate,
    ExperimentReport,
    LabelItem,
    Model,
    ModelVersion,
    PredictResponse,
    Problem,
    RecordedDecision,
    Router,
    RouterPut,
    TrainingJob,
    TrainingJobCreate,
)
from covey_client.progress import ShowProgress

P = ParamSpec("P")
T = TypeVar("T")


class Covey:
    """A client of the service. Several threads can use it.

    >>> from covey_client import Covey
    >>> with Covey() as covey:
    ...     dataset = covey.upload("helpdesk.jsonl")
    ...     job = covey.train(
    ...         {"model": "docs", "dataset_id": dataset.id, "learner": {"algorithm": "mmp"}}, timeout=600
    ...     )
    ...     answer = covey.predict("docs", ["The courier says the parcel is late."], top=1)
    >>> job.state.value, answer.predictions[0].labels
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
        self._operations = Operations(
            get_url(url),
            get_key(key),
            BlockingTransport(transport or httpx.HTTPTransport()),
            BlockingRuntime(),
            retry or Retry(),
            timeout,
        )
        self.api = self._operations.blocking_api(RunTransport)

    def close(self) -> None:
        """Close the connections."""
        run(self._operations.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, operation: Callable[P, HasParsed[T | Problem]], *args: P.args, **kwargs: P.kwargs) -> T:
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

        @wraps(operation)
        async def respond(*args: P.args, **kwargs: P.kwargs) -> HasParsed[T | Problem]:
            return operation(*args, **kwargs)

        return run(self._operations.call(respond, *args, **kwargs))

    def iterate(
        self, operation: Callable[P, HasParsed[Page[T] | Problem]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yield the items of all pages of a list. It requests a page when the items before are used up.

        Args:
            operation: a function that lists, such as ``datasets_list.sync_detailed``.
            *args: its arguments.
            **kwargs: its keyword arguments; ``limit`` is the size of a page.

        Raises:
            CoveyError: see ``call``.
        """

        @wraps(operation)
        async def respond(*args: P.args, **kwargs: P.kwargs) -> HasParsed[Page[T] | Problem]:
            return operation(*args, **kwargs)

        return iterate(self._operations.iterate(respond, *args, **kwargs))

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
        return run(self._operations.upload(source, body, progress=progress, wait=wait, timeout=timeout))

    def get_dataset(self, dataset_id: str) -> Dataset:
        """Get a data set."""
        return run(self._operations.get_dataset(dataset_id))

    def datasets(self) -> Iterator[Dataset]:
        """Yield all data sets, newest first."""
        return iterate(self._operations.datasets())

    def examples(self, dataset_id: str) -> Iterator[ExampleItem]:
        """Yield the examples of a data set."""
        return iterate(self._operations.examples(dataset_id))

    def labels(self, dataset_id: str) -> Iterator[LabelItem]:
        """Yield the labels of a data set."""
        return iterate(self._operations.labels(dataset_id))

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
        return run(
            self._operations.train(
                body, progress=progress, wait=wait, timeout=timeout, idempotency_key=idempotency_key
            )
        )

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
        return run(
            self._operations.run_experiment(
                body, progress=progress, wait=wait, timeout=timeout, idempotency_key=idempotency_key
            )
        )

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
        return run(
            self._operations.predict_batch(
                body, progress=progress, wait=wait, timeout=timeout, idempotency_key=idempotency_key
            )
        )

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
        return run(self._operations.wait(work, progress=progress, timeout=timeout))

    def cancel(self, work: Cancellable) -> Cancellable:
        """Cancel a training job, experiment or batch prediction, and return its state.

        Something that runs stops a little later; ``wait`` then raises `WorkCancelled`.

        Raises:
            Conflict: it has already ended.
            CoveyError: see ``call``.
        """
        return run(self._operations.cancel(work))

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
        return run(self._operations.download(source, path, progress=progress))

    def get_training_job(self, job_id: str) -> TrainingJob:
        """Get a training job."""
        return run(self._operations.get_training_job(job_id))

    def training_jobs(self) -> Iterator[TrainingJob]:
        """Yield all training jobs, newest first."""
        return iterate(self._operations.training_jobs())

    def get_experiment(self, experiment_id: str) -> Experiment:
        """Get an experiment."""
        return run(self._operations.get_experiment(experiment_id))

    def get_report(self, experiment_id: str) -> ExperimentReport:
        """Get the results of an experiment."""
        return run(self._operations.get_report(experiment_id))

    def experiments(self) -> Iterator[Experiment]:
        """Yield all experiments, newest first."""
        return iterate(self._operations.experiments())

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
        return run(
            self._operations.predict(
                model, documents, version=version, top=top, explain=explain, thresholds=thresholds
            )
        )

    def get_alias(self, model: str, alias: str = "live") -> Alias:
        """Get an alias, with the revision on which ``promote`` can depend."""
        return run(self._operations.get_alias(model, alias))

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
            PreconditionFailed: somebody else has changed the alias.
            CoveyError: see ``call``.
        """
        return run(self._operations.promote(model, version, alias, if_unchanged=if_unchanged))

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
            PreconditionFailed: somebody else has changed the alias, or the response to the first attempt was
                lost. Get the alias to see which.
            CoveyError: see ``call``.
        """
        return run(self._operations.roll_back(model, alias, to_version=to_version, if_unchanged=if_unchanged))

    def models(self) -> Iterator[Model]:
        """Yield all models."""
        return iterate(self._operations.models())

    def versions(self, model: str) -> Iterator[ModelVersion]:
        """Yield the versions of a model."""
        return iterate(self._operations.versions(model))

    def put_router(self, name: str, body: RouterPut | Mapping[str, Any]) -> Router:
        """Create or replace a router."""
        return run(self._operations.put_router(name, body))

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
        return run(self._operations.route(router, message, explain=explain))

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
        return run(self._operations.feedback(decision, labels, allow_new_labels=allow_new_labels))

    def decisions(self, router: str, **conditions: Any) -> Iterator[RecordedDecision]:
        """Yield the decisions of a router, newest first.

        Args:
            router: name of the router.
            **conditions: query parameters of the API, such as ``disposition="review"``; write ``from_`` for
                ``from``.
        """
        return iterate(self._operations.decisions(router, **conditions))

    def routers(self) -> Iterator[Router]:
        """Yield all routers."""
        return iterate(self._operations.routers())
