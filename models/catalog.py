"""The catalog of all learners: their parameters, sources and valid decision rules.

To add a learner, add its parameters to ``LearnerConfig`` and an entry to ``ENTRIES``. The HTTP API, the
documentation and the test suite ``tests/models/test_every_learner.py`` use the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from models.base import Learner, LearnerParameters
from models.base.incremental import IncrementalLearner
from models.base.weighted import WeightedLearner
from models.baselines.naive_bayes import NaiveBayes, NaiveBayesParameters
from models.baselines.svm import SVM, SVMParameters
from models.boosting.adaboost_lc import AdaBoostLC, AdaBoostLCParameters
from models.boosting.adaboost_mh import AdaBoostMH, AdaBoostMHParameters
from models.boosting.mp_boost import MPBoost, MPBoostParameters
from models.data.examples import Kind
from models.decisions import DecisionKind, DecisionRule
from models.decisions.rules import (
    CALIBRATED_VOTES,
    ORDER_ONLY,
    SIGNED,
    TOP_DOWN,
    TREE_LABELING,
    VOTES,
    WITHIN_DOCUMENT,
    ScoreInterpretation,
)
from models.errors import ParameterError
from models.features import NumericFeatures, NumericFeaturesParameters, TextFeatures, TextFeaturesParameters
from models.features.auto import AutoFeaturesParameters
from models.features.recipes import AMOUNTS, COVERING, LINEAR, PRESENCE, DefaultFeatures
from models.features.selection import InformationGain
from models.hierarchy.h_m3 import HM3, HM3Parameters
from models.hierarchy.h_rls import HRLS, HRLSParameters
from models.hierarchy.h_svm import HSVM, HSVMParameters
from models.mail.fields import MailFieldsParameters
from models.perceptrons import (
    MLPP,
    MMP,
    BinaryRelevancePerceptron,
    BinaryRelevancePerceptronParameters,
    MLPPParameters,
    MMPParameters,
)

LearnerConfig = TypeAliasType(
    "LearnerConfig",
    Annotated[
        AdaBoostMHParameters
        | MPBoostParameters
        | AdaBoostLCParameters
        | MMPParameters
        | MLPPParameters
        | BinaryRelevancePerceptronParameters
        | NaiveBayesParameters
        | SVMParameters
        | HSVMParameters
        | HRLSParameters
        | HM3Parameters,
        Field(
            discriminator="algorithm",
            description="A learner with its parameters, discriminated by `algorithm`.",
        ),
    ],
)
"""The parameters of any learner; ``algorithm`` selects which."""

FeaturesConfig = TypeAliasType(
    "FeaturesConfig",
    Annotated[
        TextFeaturesParameters | NumericFeaturesParameters,
        Field(
            discriminator="kind", description="How documents become feature vectors, discriminated by `kind`."
        ),
    ],
)
"""The parameters of text or numeric features; ``kind`` selects which."""

FeaturesRequest = TypeAliasType(
    "FeaturesRequest",
    Annotated[
        TextFeaturesParameters | NumericFeaturesParameters | AutoFeaturesParameters,
        Field(
            discriminator="kind",
            description="How documents become feature vectors, or a comparison of several ways (`auto`), "
            "discriminated by `kind`.",
        ),
    ],
)
"""``FeaturesConfig``, or that a training compares candidates."""

RECOMMENDED = "svm"
"""The learner to try first: it is fast, needs no tuning, and explains its decisions."""

_DEFAULT_FIELDS = MailFieldsParameters()
LEARNER_PARAMETERS: TypeAdapter[LearnerConfig] = TypeAdapter(LearnerConfig)
FEATURES_PARAMETERS: TypeAdapter[FeaturesConfig] = TypeAdapter(FeaturesConfig)
DECISION_PARAMETERS: TypeAdapter[DecisionRule] = TypeAdapter(DecisionRule)


@dataclass(frozen=True)
class CatalogEntry:
    """A learner in the catalog.

    Attributes:
        learner: the class.
        summary: a one-sentence description.
        source: the paper, and the section or figure.
        features: the features that suit it.
        interpretations: the possible meanings of its scores; the first one whose ``when`` matches applies.
        predicts_closed_sets: whether the rule ``sign`` always predicts a label together with its ancestors.
        supports_local_selection: whether each label can have its own selection of features.
        chooses_features: whether a training without features compares candidates; see
            ``AutoFeaturesParameters``.
    """

    learner: type[Learner]
    summary: str
    source: str
    features: DefaultFeatures
    interpretations: tuple[ScoreInterpretation, ...]
    predicts_closed_sets: bool = False
    supports_local_selection: bool = False
    chooses_features: bool = False

    def interpretation(self, parameters: Mapping[str, Any]) -> ScoreInterpretation:
        """Return the meaning of the scores of a learner with these parameters."""
        return next(
            interpretation
            for interpretation in self.interpretations
            if all(parameters.get(name) == value for name, value in interpretation.when.items())
        )


_MP_BOOST = "Esuli, Fagni and Sebastiani: MP-Boost, a multiple-pivot boosting algorithm"
_COVERING = "Amit, Dekel and Singer: A boosting algorithm for label covering in multilabel problems"
_PAIRWISE = "Loza Mencía and Fürnkranz: Pairwise learning of multilabel classifications with perceptrons"
_HIERARCHY = (
    "Rousu, Saunders, Szedmak and Shawe-Taylor: Kernel-based learning of hierarchical multilabel models"
)

ENTRIES: Mapping[str, CatalogEntry] = {
    entry.learner.algorithm: entry
    for entry in (
        CatalogEntry(
            AdaBoostMH,
            "Boosting of one-term rules that all labels share; gives a small, readable model.",
            f"Schapire and Singer (2000), as in {_MP_BOOST}, section 2",
            PRESENCE,
            (SIGNED,),
        ),
        CatalogEntry(
            MPBoost,
            "Boosting of one-term rules, one rule per label and round; easy to explain.",
            f"{_MP_BOOST}, section 3",
            PRESENCE,
            (SIGNED,),
            supports_local_selection=True,
        ),
        CatalogEntry(
            AdaBoostLC,
            "Boosting for a covering loss: groups of labels that are judged together, with their costs.",
            f"{_COVERING}, figure 2",
            COVERING,
            (SIGNED,),
        ),
        CatalogEntry(
            MMP,
            "One perceptron per label, trained together so that relevant labels rank above the others.",
            f"Crammer and Singer (2003), as in {_PAIRWISE}, figure 1",
            LINEAR,
            (ORDER_ONLY,),
        ),
        CatalogEntry(
            MLPP,
            "One perceptron per pair of labels; the labels are ranked by the votes that they win.",
            f"{_PAIRWISE}, section IV; the artificial label is Brinker, Fürnkranz and Hüllermeier's (2006)",
            LINEAR,
            (CALIBRATED_VOTES, VOTES),
        ),
        CatalogEntry(
            BinaryRelevancePerceptron,
            "One perceptron per label, each trained independently, one example at a time.",
            f"{_PAIRWISE}, section II-B",
            LINEAR,
            (SIGNED,),
        ),
        CatalogEntry(
            NaiveBayes,
            "Multinomial naive Bayes, trained in one fast pass.",
            f"{_PAIRWISE}, section VI-A; the multi-class boosting assignment of COS 424",
            AMOUNTS,
            (WITHIN_DOCUMENT, SIGNED),
        ),
        CatalogEntry(
            SVM,
            "One linear support vector machine per label; the recommended first choice.",
            f"{_HIERARCHY} (the flat baseline); scikit-learn's LinearSVC",
            LINEAR,
            (SIGNED,),
            chooses_features=True,
        ),
        CatalogEntry(
            HSVM,
            "One linear support vector machine per node of the tree, trained on the examples of its parent.",
            f"{_HIERARCHY} (H-SVM)",
            LINEAR,
            (TOP_DOWN,),
            predicts_closed_sets=True,
        ),
        CatalogEntry(
            HRLS,
            "One regularized least-squares classifier per node of the tree, evaluated from the root down.",
            f"Cesa-Bianchi, Gentile, Tironi and Zaniboni (2004), as in {_HIERARCHY} (H-RLS)",
            LINEAR,
            (TOP_DOWN,),
            predicts_closed_sets=True,
        ),
        CatalogEntry(
            HM3,
            "A maximum-margin Markov network over the label tree, which scores whole labelings of the tree.",
            f"{_HIERARCHY} (H-M3)",
            LINEAR,
            (TREE_LABELING,),
        ),
    )
}


_SEPARATE_LEARNERS = sorted(
    algorithm
    for algorithm, entry in ENTRIES.items()
    if entry.learner.parameters.model_validate({"algorithm": algorithm}).trains_labels_separately()
)
"""The learners that accept unknown labels with their default parameters."""


_WEIGHTED_LEARNERS = sorted(
    algorithm for algorithm, entry in ENTRIES.items() if issubclass(entry.learner, WeightedLearner)
)
"""The learners that accept weights of examples."""


INCREMENTAL_LEARNERS = sorted(
    algorithm for algorithm, entry in ENTRIES.items() if issubclass(entry.learner, IncrementalLearner)
)
"""The learners that can continue a training with more examples."""


class DecisionDescription(BaseModel):
    """The valid decision rules of a learner with certain parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    when: dict[str, Any]
    """The parameter values to which this item applies; empty: all values."""
    default: DecisionKind
    """The decision that is used if the request has none."""
    own: DecisionKind
    """The decision that `auto` uses if nothing can be held out."""
    kinds: list[DecisionKind]
    """All valid decisions."""


class LearnerDescription(BaseModel):
    """A learner, its parameters and its valid decisions."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    algorithm: str
    """The value of `learner.algorithm` that selects this learner."""
    summary: str
    """A one-sentence description."""
    source: str
    """The paper that describes the learner."""
    parameters: dict[str, Any]
    """JSON Schema of the parameters."""
    defaults: dict[str, Any]
    """The default values of the parameters."""
    default_features: DefaultFeatures
    """The features that are used if the request has no features, by the kind of the data set."""
    chooses_features: bool
    """Whether a training without features compares them with others, as with the features `auto`."""
    default_decision: DecisionKind
    """The decision that is used with the default parameters if the request has no decision."""
    decisions: list[DecisionDescription]
    """The valid decisions. The first item whose `when` matches the parameters applies."""
    accepts_unknown_labels: bool
    """Whether it accepts examples with unknown labels, with its default parameters."""
    accepts_weights: bool
    """Whether it accepts examples with weights, with its default parameters."""
    can_partial_fit: bool
    """Whether `POST /v1/models/{name}/versions/{version}/partial-fit` can continue its training."""


def describe() -> list[LearnerDescription]:
    """Return the descriptions of all learners, sorted by ``algorithm``.

    >>> [learner.algorithm for learner in describe()][:3]
    ['adaboost_lc', 'adaboost_mh', 'binary_relevance_perceptron']
    """
    return [_description(entry) for _, entry in sorted(ENTRIES.items())]


def create_learner(parameters: LearnerParameters, *, seed: int = 0) -> Learner:
    """Create an unfitted learner.

    Args:
        parameters: its parameters.
        seed: its ``random_state``, if it has one.
    """
    entry = ENTRIES[parameters.algorithm]  # type: ignore[attr-defined]  # every member of the union has it
    return entry.learner.from_parameters(parameters, random_state=seed)


def default_parameters() -> LearnerConfig:
    """Return the parameters of the learner that is the recommended first choice."""
    return LEARNER_PARAMETERS.validate_python({"algorithm": RECOMMENDED})


def default_learner(*, seed: int = 0) -> Learner:
    """Create the unfitted learner that is the recommended first choice."""
    return create_learner(default_parameters(), seed=seed)


def create_features(parameters: FeaturesConfig) -> TextFeatures | NumericFeatures:
    """Create unfitted features."""
    if isinstance(parameters, TextFeaturesParameters):
        return TextFeatures(parameters)
    return NumericFeatures(parameters)


def resolve_features(
    learner: Learner | LearnerParameters, features: FeaturesConfig | None, kind: Kind
) -> FeaturesConfig:
    """Return the features to use.

    Args:
        learner: the learner or its parameters.
        features: the requested features; None selects those that suit the learner.
        kind: kind of the documents.

    Raises:
        ParameterError: see ``check_features``.
    """
    if features is None:
        entry = ENTRIES.get(_algorithm(learner))
        recipe = LINEAR if entry is None else entry.features  # a learner of the user is not in the catalog
        features = getattr(recipe, kind)
    check_features(features, learner, kind)
    return features


def requested_features(
    learner: LearnerParameters, features: FeaturesRequest | None, kind: Kind
) -> FeaturesRequest:
    """Return the features of a training: those that suit the learner, or ``auto``, if none are requested.

    Raises:
        ParameterError: see ``check_features``.
    """
    if features is None and chooses_features(learner):
        return AutoFeaturesParameters(kind="auto")
    return (
        features
        if isinstance(features, AutoFeaturesParameters)
        else resolve_features(learner, features, kind)
    )


def chooses_features(learner: Learner | LearnerParameters) -> bool:
    """Whether a training without features compares candidates."""
    entry = ENTRIES.get(_algorithm(learner))
    return entry is not None and entry.chooses_features


def check_features(features: FeaturesConfig, learner: Learner | LearnerParameters, kind: Kind) -> None:
    """Check that features suit the documents and the learner.

    Args:
        features: parameters of the features.
        learner: the learner or its parameters.
        kind: kind of the documents.

    Raises:
        ParameterError: the kind of features does not suit the documents (pointer ``/features/kind``), or the
            learner does not support local selection (``/features/selection/policy``), or a text has no fields
            (``/features/fields``), or a parameter of the learner does not suit the documents.
    """
    expected = "numeric" if kind == "features" else "text"
    if features.kind != expected:
        raise ParameterError(
            f"{features.kind} features cannot be computed from a data set of kind {kind!r}; use {expected}",
            "/features/kind",
        )
    if kind == "text" and isinstance(features, TextFeaturesParameters) and features.fields != _DEFAULT_FIELDS:
        raise ParameterError(
            "the documents are texts without fields; remove fields, or create a data set of e-mails",
            "/features/fields",
        )
    entry = ENTRIES.get(_algorithm(learner))
    local = isinstance(features, TextFeaturesParameters) and (
        isinstance(features.selection, InformationGain) and features.selection.policy == "local"
    )
    if local and entry is not None and not entry.supports_local_selection:
        raise ParameterError(
            f"{_algorithm(learner)} does not support local selection; use the policy round_robin or max",
            "/features/selection/policy",
        )
    parameters = learner.validated_parameters() if isinstance(learner, Learner) else learner
    parameters.check_documents(numeric_features=kind == "features")


def check_unknown_labels(learner: Learner | LearnerParameters) -> None:
    """Check that a learner can be trained on examples with unknown labels.

    Raises:
        ParameterError: it trains all labels together (pointer ``/learner/algorithm``).
    """
    parameters = learner.validated_parameters() if isinstance(learner, Learner) else learner
    if not parameters.trains_labels_separately():
        raise ParameterError(
            f"labels of some training examples are unknown, and {_algorithm(learner)} trains all labels "
            "together, so it cannot leave out an example for one label; use one of "
            f"{', '.join(_SEPARATE_LEARNERS)}, or state for each example whether the label applies",
            "/learner/algorithm",
        )


def check_weights(learner: Learner | LearnerParameters) -> None:
    """Check that a learner can be trained on examples with weights.

    Raises:
        ParameterError: it does not accept weights (pointer ``/learner/algorithm``).
    """
    if _algorithm(learner) not in _WEIGHTED_LEARNERS and not isinstance(learner, WeightedLearner):
        raise ParameterError(
            f"some training examples have a weight other than 1, and {_algorithm(learner)} does not accept "
            f"weights; use one of {', '.join(_WEIGHTED_LEARNERS)}, or upload the data set without weights",
            "/learner/algorithm",
        )


def resolve_decision(
    learner: Learner | LearnerParameters, decision: DecisionRule | Mapping[str, Any] | str | None
) -> DecisionRule:
    """Return the decision rule to use.

    Args:
        learner: the learner or its parameters.
        decision: the requested rule, its kind, or its JSON form; None selects the learner's default.

    Raises:
        ParameterError: the rule is invalid (pointer ``/decision``), or not valid for the learner
            (``/decision/kind``).
    """
    interpretation = _interpretation(learner)
    if isinstance(decision, str | Mapping):
        form = {"kind": decision} if isinstance(decision, str) else decision
        try:
            decision = DECISION_PARAMETERS.validate_python(form)
        except ValidationError as error:
            raise ParameterError(
                f"the decision is invalid: {error.errors()[0]['msg']}", "/decision"
            ) from error
    if decision is None:
        return DECISION_PARAMETERS.validate_python({"kind": interpretation.default})
    if decision.kind not in interpretation.decisions:
        raise ParameterError(
            f"the decision {decision.kind} is not valid for {_algorithm(learner)} because"
            f" {interpretation.reason}; choose one of {', '.join(interpretation.decisions)}",
            "/decision/kind",
        )
    return decision


def default_threshold(learner: Learner | LearnerParameters, n_labels: int) -> float:
    """Return the score above which a label is relevant if its threshold is not tuned.

    This is 0, or half of the k − 1 possible votes.
    """
    return (n_labels - 1) / 2 if _interpretation(learner).scale == "votes" else 0.0


def has_zero_threshold(learner: Learner | LearnerParameters) -> bool:
    """Whether a positive score is for a label, so that 0 is a valid threshold if none can be tuned."""
    return _interpretation(learner).scale == "zero"


def predicts_closed_sets(learner: Learner) -> bool:
    """Whether the rule ``sign`` always predicts a label together with its ancestors."""
    entry = ENTRIES.get(learner.algorithm)
    return entry is not None and entry.predicts_closed_sets


def own_decision(learner: Learner | LearnerParameters) -> DecisionRule:
    """Return the decision that suits the scores of a learner if nothing can be held out."""
    return DECISION_PARAMETERS.validate_python({"kind": _interpretation(learner).own})


def _interpretation(learner: Learner | LearnerParameters) -> ScoreInterpretation:
    entry = ENTRIES.get(_algorithm(learner))
    if entry is None:  # a learner of the user that is not in the catalog
        return SIGNED
    return entry.interpretation(
        learner.get_params() if isinstance(learner, Learner) else learner.model_dump()
    )


def _algorithm(learner: Learner | LearnerParameters) -> str:
    return str(learner.algorithm)  # type: ignore[union-attr]  # every member of the union has it


def _description(entry: CatalogEntry) -> LearnerDescription:
    parameters = entry.learner.parameters
    defaults = parameters.model_validate({"algorithm": entry.learner.algorithm}).model_dump(mode="json")
    return LearnerDescription(
        algorithm=entry.learner.algorithm,
        summary=entry.summary,
        source=entry.source,
        parameters=parameters.model_json_schema(),
        defaults={name: value for name, value in defaults.items() if name != "algorithm"},
        default_features=entry.features,
        chooses_features=entry.chooses_features,
        default_decision=entry.interpretation(defaults).default,
        decisions=[
            DecisionDescription(when=dict(r.when), default=r.default, own=r.own, kinds=list(r.decisions))
            for r in entry.interpretations
        ],
        accepts_unknown_labels=entry.learner.algorithm in _SEPARATE_LEARNERS,
        accepts_weights=entry.learner.algorithm in _WEIGHTED_LEARNERS,
        can_partial_fit=entry.learner.algorithm in INCREMENTAL_LEARNERS,
    )
