"""Request and response schemas of models, versions and aliases."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypeAliasType

from app.api.schemas import JsonObject, NextCursor, RequestModel, ResponseModel, Timestamp, VersionNumber
from app.registry.alias_changes import Reason
from models.decisions.report import DecisionReport

PromotionRule = TypeAliasType(
    "PromotionRule",
    Annotated[
        Literal["if_first", "always", "never"],
        Field(description="When the alias `live` moves to a new version, regardless of its measures."),
    ],
)


class IfBetter(RequestModel):
    """The measure that decides whether a version is promoted, and its test.

    Both versions predict for the held-out examples of the training. Examples that the `live` version was
    trained on are left out if they are known, and so are messages that the doubt or a mistake of a version
    selected for a review. The new version is promoted if its value is better, and if a paired randomization
    test finds the difference significant. The n-th comparison of versions of the model on the same examples
    has the level `alpha / (n (n + 1))`.
    """

    metric: str = Field(examples=["f1_micro"])
    """Name of a measure, as in `metrics` of a version. Measures of probabilities cannot be compared."""
    alpha: float = Field(default=0.05, gt=0, lt=1)
    """Largest probability that any number of comparisons on the same examples promotes a version that is not
    better. `1 - alpha` is the confidence of the interval of the difference."""
    at_least: float = Field(default=0.0, ge=0)
    """Smallest difference of the values that counts, in units of the measure."""


class PromoteIfBetter(RequestModel):
    """Promote a version only if it is better than the current `live` version."""

    if_better: IfBetter
    """The measure to compare."""


class VersionComparison(ResponseModel):
    """The comparison of a new version with the version that was live, on the same held-out examples."""

    metric: str
    """Name of the measure."""
    live_version: int
    """Number of the version that was live."""
    examples: int
    """Number of examples for which both versions predicted."""
    left_out: int
    """Number of held-out examples that were left out, because the live version was trained on their
    documents."""
    left_out_selected: int = 0
    """Number of other held-out examples that were left out, because the doubt or a mistake of a version
    selected them for a review (`selected_by`). That version errs on them more often than an equally good
    one."""
    live_training_examples: Literal["known", "partly_known", "unknown"]
    """Whether it is known which examples the live version was trained on. `partly_known`: all but those of
    partial fits. `unknown`: its data set or its training job was deleted, it was imported, or an earlier
    release drew its random split. The live version may then seem better than it is."""
    alpha: float
    """Largest probability that any number of comparisons on the same examples promotes a version that is not
    better."""
    at_least: float
    """Smallest difference that counts."""
    attempt: int | None = None
    """Number of this comparison, from 1, among those of the model that had at least one of the examples. Like
    the next fields, absent if there were too few examples."""
    level: float | None = None
    """Largest p-value of a significant difference: `alpha / (n (n + 1))` for attempt n."""
    new_value: float | None = None
    """Value of the new version."""
    live_value: float | None = None
    """Value of the live version. A label that a version does not know is never predicted."""
    difference: float | None = None
    """`new_value - live_value`."""
    interval: list[float] | None = None
    """Lower and upper end of the interval of the difference, with the confidence `1 - alpha`: percentiles of
    2,000 resamples of the examples."""
    p_value: float | None = None
    """Two-sided p-value of the paired randomization test with 10,000 permutations, or up to 1,000,000 if the
    level is low."""
    new_right: int | None = None
    """Number of the examples for which the new version predicts exactly the right labels."""
    live_right: int | None = None
    """Number of the examples for which the live version predicts exactly the right labels."""
    labels_only_in_new: int | None = None
    """Number of labels that the live version does not know."""
    labels_only_in_live: int | None = None
    """Number of labels that the new version does not know."""


class PromotionOutcome(ResponseModel):
    """Whether a new version was promoted, and why."""

    promoted: bool
    """Whether the alias `live` moved to the new version."""
    reason: str
    """Why, as a sentence for people."""
    live_before: int | None = None
    """Number of the version that was live before. Absent if the model had no live version."""
    comparison: VersionComparison | None = None
    """The comparison of `if_better`. Absent for other rules, and if the versions could not be compared."""


class PartMetrics(ResponseModel):
    """Measures on the training part, and on the test part if there is one."""

    train: dict[str, float]
    """Value of each measure on the training examples."""
    test: dict[str, float] | None = None
    """Value of each measure on the held-out examples. Absent if no examples were held out."""


class Model(ResponseModel):
    """A named model with its versions."""

    name: str
    """Name of the model."""
    created_at: Timestamp
    """Time when the first version was created."""
    versions: int
    """Number of versions."""
    last_version: int
    """The highest version number used so far. Numbers are never reused."""
    aliases: dict[str, int]
    """Version number of each alias. Requests without a version use the alias `live`."""


class ModelPage(ResponseModel):
    """A page of models, by name."""

    items: list[Model]
    """Models of this page."""
    next_cursor: NextCursor = None


class Artifact(ResponseModel):
    """The file of a version."""

    sha256: str
    """SHA-256 of the file, in hexadecimal."""
    size_bytes: int
    """Size of the file in bytes."""


class TrainingReference(ResponseModel):
    """What a version predicts for documents like those of its training.

    Reports of routers compare routed messages with it.
    """

    source: Literal["folds", "validation", "test_then_train", "training"]
    """Where the label sets come from: predictions for held-out folds of the training part (`folds`);
    predictions for validation examples (`validation`); predictions for either of them and for examples of
    partial fits before they were learned (`test_then_train`); or, if nothing was held out, the true label
    sets of the training part (`training`)."""
    examples: int
    """Number of examples."""
    label_counts: dict[str, int]
    """Number of examples with each label."""
    without_label: int
    """Number of examples with an empty label set."""
    set_probabilities: list[int] | None = None
    """Number of examples by `set_probability`, in 100 bins of equal width from 0 to 1. Absent if the version
    is not calibrated."""
    unknown_terms: list[int] | None = None
    """Number of training documents by the share of their terms that would be unknown if the document was held
    out, in 100 bins of equal width from 0 to 1. Absent if the features are not terms."""
    mean_unknown_terms: float | None = None
    """Mean of these shares. Absent if no document has terms."""


class VersionLineage(ResponseModel):
    """From which version a partial fit has made a version."""

    parent_version: int
    """Number of the version from which the training continued. It may be deleted by now."""
    examples: int
    """Number of examples of the partial fit."""


class ModelVersion(ResponseModel):
    """An immutable version of a model."""

    model: str
    """Name of the model."""
    version: int
    """Number of the version, from 1."""
    aliases: list[str]
    """Aliases that currently name this version."""
    labels: list[str]
    """Labels that the version can predict, in label order."""
    closed_under_ancestors: bool
    """Whether every predicted label set includes all ancestors of its labels in the label tree."""
    learner: JsonObject
    """The learner with all its parameters, including defaults."""
    features: JsonObject
    """The feature extraction with all its parameters, including defaults."""
    decision: JsonObject
    """The rule that turns scores into a label set, with all its parameters, including defaults."""
    has_curves: bool = False
    """Whether routers can use the version with policies, such as `target_precision`."""
    calibrated: bool = False
    """Whether predictions include probabilities. Decisions that hold training examples out fit them."""
    decision_report: DecisionReport | None = None
    """How the decision was tuned. Absent if its kind gives no choice."""
    thresholds: dict[str, float] | None = None
    """For each label the score above which it is predicted. A label without a threshold is never predicted.
    Absent in lists."""
    reference: TrainingReference | None = None
    """What the version predicts for documents like those of its training. Absent in lists."""
    metrics: PartMetrics | None = None
    """Measures from the training. Absent if nothing was measured."""
    facts: JsonObject
    """Figures of the training, such as distinct pivots, operations, and precision of the weights."""
    warnings: list[str]
    """Warnings for people, in full sentences."""
    dataset_id: str | None = None
    """Id of the data set that the version was trained on. Absent if the data set is deleted, for an import,
    and for a partial fit."""
    dataset_sha256: str | None = None
    """SHA-256 of the content that the version was trained on. Absent if unknown."""
    training_job_id: str | None = None
    """Id of the training job. Absent for an import and for a partial fit."""
    lineage: VersionLineage | None = None
    """The version from which a partial fit has made this one. Absent for other versions."""
    seed: int
    """Seed of the random numbers of the training."""
    artifact: Artifact
    """The file of the version, which can be downloaded and imported into another service."""
    created_at: Timestamp
    """Time when the version was trained or imported."""
    software: dict[str, str]
    """Version of each software package that created or imported the version."""
    timings: dict[str, float]
    """Duration of each phase of the training in seconds."""


class ModelVersionPage(ResponseModel):
    """A page of versions, newest first."""

    items: list[ModelVersion]
    """Versions of this page."""
    next_cursor: NextCursor = None


class Pivot(ResponseModel):
    """The stump that a round of boosting chose for a label."""

    round: int
    """Number of the round, from 1."""
    label: str
    """The label."""
    feature: str
    """The pivot: the feature that the stump tests."""
    threshold: float | None = None
    """A document is on the present side if its feature is above the threshold. Absent if the stump tests
    whether the document has the feature."""
    absent: float
    """What the round adds to the score of a document on the absent side, in single precision."""
    present: float
    """What the round adds to the score of a document on the present side, in single precision."""


class PivotPage(ResponseModel):
    """A page of pivots, by round and label."""

    items: list[Pivot]
    """Pivots of this page."""
    next_cursor: NextCursor = None


class AliasPut(RequestModel):
    """The version that an alias is set to."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"version": 3},
            ]
        }
    )

    version: VersionNumber
    """Number of an existing version."""


class AliasRollback(RequestModel):
    """The version that an alias is rolled back to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"to_version": 2}]})

    to_version: VersionNumber | None = None
    """Number of a version that the alias has named before. Defaults to the last version before the current
    one that still exists."""


class Alias(ResponseModel):
    """A name of one version of a model."""

    model: str
    """Name of the model."""
    alias: str
    """Name of the alias."""
    version: int
    """Number of the version that the alias names."""
    revision: int
    """Number of changes of the alias, from 1; also its `ETag`. An alias that is created again after its
    deletion continues to count."""
    updated_at: Timestamp
    """Time of the last change."""


class AliasPage(ResponseModel):
    """A page of aliases, by name."""

    items: list[Alias]
    """Aliases of this page."""
    next_cursor: NextCursor = None


class AliasChange(ResponseModel):
    """A change of an alias."""

    revision: int
    """Revision of the alias after the change."""
    from_version: int | None = None
    """Number of the version before the change; it may be deleted by now. Absent if the alias was created."""
    to_version: int | None = None
    """Number of the version after the change. Absent if the alias was deleted."""
    reason: Reason
    """What changed the alias: the promotion rule of a training (`training`), of an import (`import`) or of a
    partial fit (`partial_fit`), or a request (`put`, `rollback`, `delete`)."""
    actor_id: str | None = None
    """Id of the user or API key that sent the request, or that requested the training. Absent if the service
    required no key."""
    actor_name: str | None = None
    """Name of this user or API key. Absent if it was deleted."""
    training_job_id: str | None = None
    """Id of the training job that promoted the version."""
    changed_at: Timestamp
    """Time of the change."""


class AliasHistoryPage(ResponseModel):
    """A page of changes of an alias, newest first."""

    items: list[AliasChange]
    """Changes of this page."""
    next_cursor: NextCursor = None
