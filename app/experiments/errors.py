"""Pool the errors of a configuration over its folds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from app.api.paging import Page, positions
from app.context import AppContext
from app.errors import Invalid
from app.experiments import cell_files, service
from app.experiments.folds import held_out_folds
from app.experiments.schemas import ExperimentConfusion, ExperimentCreate, ExperimentErrorPage
from models.trials.errors import ErrorLimits, most_frequent

MAX_DOCUMENTS = 10_000
"""Largest number of documents with a wrong label of a configuration, over all folds."""

MAX_PAIRS = 10_000
"""Largest number of pairs of labels of a configuration in a response."""


def limits_of_cell(request: ExperimentCreate) -> ErrorLimits:
    """Return how many errors a cell keeps, so that those of a configuration fit in memory."""
    n_folds = len(held_out_folds(request))
    return ErrorLimits(min(1000, MAX_DOCUMENTS // n_folds), min(MAX_PAIRS, 10 * MAX_PAIRS // n_folds))


def page(ctx: AppContext, experiment_id: str, configuration: int, page: Page) -> ExperimentErrorPage:
    """Return a page of the documents with wrong labels of a configuration, worst first.

    Raises:
        NotFound: the experiment does not exist.
        Invalid: it has no such configuration.
        FileDamaged: the held-out examples of a cell cannot be read.
    """
    documents = [
        {**document, "fold": fold}
        for fold, errors in _load(ctx, experiment_id, configuration)[1].items()
        for document in errors["examples"]
    ]
    documents.sort(key=lambda d: (-d["n_wrong"], -d["misranking"], d["fold"], d["example"]))
    shown, cursor = positions(page, len(documents))
    items = [
        {
            **document,
            "scores": [{"label": label, "score": score} for label, score in document["scores"].items()],
        }
        for document in documents[shown.start : shown.stop]
    ]
    return ExperimentErrorPage.model_validate({"items": items, "next_cursor": cursor})


def confusion(ctx: AppContext, experiment_id: str, configuration: int) -> ExperimentConfusion:
    """Return which labels a configuration confuses, over all folds that have succeeded so far.

    Raises:
        NotFound: the experiment does not exist.
        Invalid: it has no such configuration.
        FileDamaged: the held-out examples of a cell cannot be read.
    """
    name, by_fold = _load(ctx, experiment_id, configuration)
    is_single_label = bool(by_fold) and all(errors["confusion"] is not None for errors in by_fold.values())
    field = "confusion" if is_single_label else "co_errors"
    counts: Counter[tuple[str, str]] = Counter()
    for errors in by_fold.values():
        for pair in errors[field]:
            counts[pair["label"], pair["predicted"]] += pair["count"]
    pairs = most_frequent(counts, MAX_PAIRS)
    return ExperimentConfusion.model_validate(
        {
            "configuration": configuration,
            "name": name,
            "folds": list(by_fold),
            field: [{"label": p.label, "predicted": p.predicted, "count": p.count} for p in pairs],
        }
    )


def _load(
    ctx: AppContext, experiment_id: str, configuration: int
) -> tuple[str | None, dict[int, dict[str, Any]]]:
    """Return the name of a configuration, and the errors of its cells that have succeeded, by fold."""
    with ctx.db.read() as session:
        experiment = service.get_or_404(session, experiment_id)
        results = service.cell_results(session, experiment_id, configuration)
    configurations = experiment.request["configurations"]
    if configuration >= len(configurations):
        message = f"the experiment has configurations 0 to {len(configurations) - 1}"
        raise Invalid(message, errors=[("/query/configuration", message)])
    by_fold = {fold: cell_files.load_errors(ctx, result["examples"]) for fold, result in results.items()}
    return configurations[configuration].get("name"), by_fold
