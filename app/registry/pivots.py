"""Read the pivots of boosted versions from their artifacts."""

from __future__ import annotations

from app.api.paging import Page, cut
from app.db.session import Database
from app.errors import Invalid, NotFound
from app.registry.queries import get_version_or_404
from app.registry.schemas import Pivot, PivotPage
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import load_before_use
from models.base.abilities import WithPivots


def page_pivots(
    db: Database, loaded: LoadedModels, name: str, version: int, label: str | None, page: Page
) -> PivotPage:
    """Return a page of the pivots of a version, by round and label.

    Raises:
        NotFound: there is no such model or version, or it has no pivots.
        Invalid: the version does not know the label, or the cursor belongs to another list.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    after = page.after_number()
    pipeline = load_before_use(
        db, loaded, lambda session: get_version_or_404(session, name, version)
    ).pipeline
    labels, features = pipeline.labels_, pipeline.features_.names_
    if label is not None and label not in labels:
        message = f"version {version} does not predict the label {label!r}"
        raise Invalid(message, errors=[("/query/label", message)])
    learner = pipeline.learner_
    if not isinstance(learner, WithPivots):
        raise NotFound(
            f"version {version} of model {name} has no pivots: {learner.algorithm} chooses none",
            code="no_pivots",
        )
    pivots = learner.pivots(None if label is None else labels.index(label), after=after, limit=page.limit + 1)
    n_pivots = len(pivots.positions)
    thresholds = [None] * n_pivots if pivots.thresholds is None else pivots.thresholds.tolist()
    columns = zip(
        pivots.positions.tolist(),
        pivots.rounds.tolist(),
        pivots.labels.tolist(),
        pivots.features.tolist(),
        thresholds,
        pivots.absent.tolist(),
        pivots.present.tolist(),
        strict=True,
    )
    rows, cursor = cut(list(columns), page, lambda row: int(row[0]))
    items = [
        Pivot(
            round=round_,
            label=labels[label_index],
            feature=features[feature],
            threshold=threshold,
            absent=absent,
            present=present,
        )
        for _, round_, label_index, feature, threshold, absent, present in rows
    ]
    return PivotPage(items=items, next_cursor=cursor)
