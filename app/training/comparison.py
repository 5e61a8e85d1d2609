"""Compare a new version with the live one on the held-out examples of its training.

Both versions predict for the same examples. Examples that the live version was trained on are left out, as
far as they are known, because it would seem better than it is. Messages that the doubt or a mistake of a
version selected for a review are left out, too, because that version would seem worse than it is. The more
comparisons of the model have used an example, the lower is the level of the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from app.context import AppContext
from app.db import tables
from app.db.rows import snapshot
from app.registry.publishing import LIVE, ComparisonRecord, Verdict, compared_documents
from app.registry.schemas import IfBetter
from app.storage import MissingFileError
from app.training.schemas import RandomSplit, TrainingJobCreate
from app.training.splitting import split_examples
from models import artifact
from models.arrays import Bools, Ints, Labels
from models.data.examples import is_fair_test
from models.data.store import StoredExamples
from models.errors import ArtifactError, BadDataError, CoveyError
from models.labels import LabelTree
from models.labels.indicator_matrix import indicator_matrix, unknown_matrix
from models.measures.attempts import attempt_number, document_sketch, level_of_attempt
from models.measures.directions import is_better
from models.measures.paired import PairedComparison, compare
from models.measures.paired_measures import Outcomes, count_right, paired_sums
from models.pipeline import Pipeline
from models.splits import SPLIT_REVISION

MIN_EXAMPLES = 20
"""Fewest examples that can decide about a promotion."""

Knowledge: TypeAlias = Literal["known", "partly_known", "unknown"]
"""Whether it is known which examples a version was trained on."""


@dataclass(frozen=True)
class _Live:
    """The live version, with what is stored about its training.

    Attributes:
        version: the version.
        root: the version that was trained on a data set, from which partial fits have made ``version``; None
            if it was deleted.
        job: the training job of ``root``; None if it was deleted, or if ``root`` was imported.
        dataset: the data set of ``root``; None if it was deleted or is unknown.
    """

    version: tables.ModelVersion
    root: tables.ModelVersion | None
    job: tables.Job | None
    dataset: tables.Dataset | None


def compare_with_live(
    ctx: AppContext,
    request: TrainingJobCreate,
    rule: IfBetter,
    pipeline: Pipeline,
    test: StoredExamples | None,
) -> Verdict:
    """Decide whether a new version is promoted, by a paired test against the version that is live now.

    Args:
        ctx: the application context.
        request: the request of the training, with its defaults filled in.
        rule: the measure and its test.
        pipeline: the new version.
        test: the held-out examples of the training; None if there are none.

    Raises:
        StorageUnavailableError: the storage is unavailable.
    """
    live = _read_live(ctx, request.model)
    if live is None:
        return Verdict(None, True, "the model had no live version to compare with")
    number = live.version.version

    def refuse(reason: str) -> Verdict:
        return Verdict(number, False, reason)

    if test is None:
        return refuse("no examples were held out, so the versions could not be compared")
    try:
        other = artifact.load(ctx.storage.local(live.version.artifact_key))
    except (MissingFileError, ArtifactError) as error:
        return refuse(f"version {number} could not be loaded for the comparison: {error}")
    digests = test.document_digests()
    keep, knowledge = _without_training_examples(ctx, live, digests)
    is_fair = is_fair_test(test.selections())
    left_out, left_out_selected = int((~keep).sum()), int((keep & ~is_fair).sum())
    examples = test.where(keep & is_fair)
    facts: dict[str, Any] = {
        "metric": rule.metric,
        "live_version": number,
        "examples": examples.n_examples,
        "left_out": left_out,
        "left_out_selected": left_out_selected,
        "live_training_examples": knowledge,
        "alpha": rule.alpha,
        "at_least": rule.at_least,
    }
    if examples.n_examples < MIN_EXAMPLES:
        n = examples.n_examples
        reason = f"{n} held-out examples are too few for a comparison, which needs {MIN_EXAMPLES}"
        if left_out:
            reason += f"; {left_out} were left out because version {number} was trained on them"
        if left_out_selected:
            reason += (
                f"; {left_out_selected} were left out because the doubt or a mistake of a version selected "
                "them: set review_sample of the router, review its sample, and make a data set from it"
            )
        return Verdict(number, False, reason, facts)
    documents = document_sketch(digests[keep & is_fair])
    with snapshot(ctx.db) as session:
        earlier = compared_documents(session, request.model)
    attempt = attempt_number(documents, earlier)
    level = level_of_attempt(rule.alpha, attempt)
    try:
        result, counts = _compare(request, rule, level, pipeline, other, examples)
    except CoveyError as error:
        return refuse(f"the versions could not be compared: {error}")
    except KeyError:
        return refuse(f"{rule.metric} cannot be computed for both versions on these examples")
    facts |= {
        "attempt": attempt,
        "level": level,
        "new_value": result.first,
        "live_value": result.second,
        "difference": result.difference,
        "interval": [*result.interval],
        "p_value": result.p_value,
        **counts,
    }
    promote, reason = _decide(rule, number, result, attempt)
    return Verdict(number, promote, reason, facts, ComparisonRecord(len(earlier) + 1, documents))


def _decide(rule: IfBetter, live: int, result: PairedComparison, attempt: int) -> tuple[bool, str]:
    values = f"{rule.metric} is {result.first:.4f}, and {result.second:.4f} for version {live}"
    if not is_better(rule.metric, result.first, result.second):
        return False, f"{values}: not better"
    if abs(result.difference) < rule.at_least:
        return False, f"{values}: better by less than at_least, {rule.at_least:g}"
    level = level_of_attempt(rule.alpha, attempt)
    of = f"the level {level:.2g} of comparison {attempt} on the same examples (alpha is {rule.alpha:g})"
    if result.p_value > level:
        return False, f"{values}: not significant, p = {result.p_value:.2g} is above {of}"
    return True, f"{values}: better, p = {result.p_value:.2g} is not above {of}"


def _compare(
    request: TrainingJobCreate,
    rule: IfBetter,
    level: float,
    new: Pipeline,
    live: Pipeline,
    examples: StoredExamples,
) -> tuple[PairedComparison, dict[str, int]]:
    """Return the comparison, and its numbers of examples and labels by field of ``VersionComparison``."""
    labels = sorted({*new.labels_, *live.labels_})
    tree = new.tree_
    Y = indicator_matrix(examples.label_sets(), labels, tree)
    unknown = unknown_matrix(examples.unknown_sets(), Y, labels, tree)
    covering = request.covering or request.learner.training_covering()
    outcomes = [_outcomes(pipeline, examples, labels) for pipeline in (new, live)]
    (first, statistic), (second, _) = (
        paired_sums(rule.metric, Y, each, labels, tree=tree, covering=covering, unknown=unknown)
        for each in outcomes
    )
    result = compare(first, second, statistic, confidence=1 - rule.alpha, level=level, seed=request.seed)
    new_right, live_right = (count_right(Y, each, unknown) for each in outcomes)
    return result, {
        "new_right": new_right,
        "live_right": live_right,
        "labels_only_in_new": len(labels) - len(live.labels_),
        "labels_only_in_live": len(labels) - len(new.labels_),
    }


def _outcomes(pipeline: Pipeline, examples: StoredExamples, labels: list[str]) -> Outcomes:
    """Return what a version predicts, with a column for each label. It never predicts one that it lacks."""
    own = pipeline.scored(examples)
    columns = np.searchsorted(labels, pipeline.labels_)
    scores = np.full((len(own.scores), len(labels)), -np.inf)
    scores[:, columns] = own.scores
    predicted = pipeline.decide(own)
    wider: Labels = csr_array(
        (predicted.data, columns[predicted.indices], predicted.indptr), shape=scores.shape
    )
    return Outcomes(wider, scores)


def _read_live(ctx: AppContext, model: str) -> _Live | None:
    with snapshot(ctx.db) as session:
        alias = session.get(tables.ModelAlias, (model, LIVE))
        if alias is None:
            return None
        version = session.get_one(tables.ModelVersion, (model, alias.version))
        root: tables.ModelVersion | None = version
        while root is not None and (lineage := root.description.get("lineage")) is not None:
            root = session.get(tables.ModelVersion, (model, lineage["parent_version"]))
        if root is None:
            return _Live(version, None, None, None)
        job = session.get(tables.Job, root.training_job_id) if root.training_job_id is not None else None
        dataset = session.get(tables.Dataset, root.dataset_id) if root.dataset_id is not None else None
        return _Live(version, root, job, dataset)


def _without_training_examples(ctx: AppContext, live: _Live, digests: Ints) -> tuple[Bools, Knowledge]:
    """Return which documents the live version was not trained on, (n,), and whether this is known.

    The same document counts as the same example, also in another data set and with other labels.
    """
    unknown: tuple[Bools, Knowledge] = np.ones(len(digests), dtype=np.bool_), "unknown"
    root, job, dataset = live.root, live.job, live.dataset
    if root is None or job is None or dataset is None or dataset.storage_key is None:
        return unknown
    trained = TrainingJobCreate.model_validate(job.spec)
    if isinstance(trained.split, RandomSplit) and root.description.get("split_revision") != SPLIT_REVISION:
        return unknown  # an earlier release has drawn other parts from the same seed
    try:
        stored = StoredExamples(ctx.storage.local(dataset.storage_key))
        tree = LabelTree(dataset.label_tree) if dataset.label_tree else None
        parts = split_examples(stored, trained, tree)
        seen = [part.document_digests() for part in (parts.training, parts.validation) if part is not None]
        keep = ~np.isin(digests, np.concatenate(seen))
    except (MissingFileError, BadDataError):  # it was deleted in the meantime
        return unknown
    return keep, "known" if root is live.version else "partly_known"
