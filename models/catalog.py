"""Every learner there is: its parameters, where it comes from, and which decisions its scores allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from models.base import Learner, LearnerParameters
from models.baselines.naive_bayes import NaiveBayes, NaiveBayesParameters
from models.baselines.svm import SVM, SVMParameters
from models.boosting.adaboost_lc import AdaBoostLC, AdaBoostLCParameters
from models.boosting.adaboost_mh import AdaBoostMH, AdaBoostMHParameters
from models.boosting.mp_boost import MPBoost, MPBoostParameters
from models.data.examples import Kind
from models.decisions import DecisionKind, DecisionUnion
from models.errors import ParameterError
from models.features import NumericFeatures, NumericFeaturesParameters, TextFeatures, TextFeaturesParameters
from models.features.selection import InformationGain
from models.hierarchy.h_m3 import HM3, HM3Parameters
from models.hierarchy.h_rls import HRLS, HRLSParameters
from models.hierarchy.h_svm import HSVM, HSVMParameters
from models.perceptrons import (
    MLPP,
    MMP,
    BinaryRelevancePerceptron,
    BinaryRelevancePerceptronParameters,
    MLPPParameters,
    MMPParameters,
)

LearnerUnion: TypeAlias = Annotated[
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
    Field(discriminator="algorithm"),
]
"""The parameters of any learner, told apart by ``algorithm``."""

FeaturesUnion: TypeAlias = Annotated[
    TextFeaturesParameters | NumericFeaturesParameters, Field(discriminator="kind")
]
"""The parameters of any features, told apart by ``kind``."""

LEARNER_PARAMETERS: TypeAdapter[LearnerUnion] = TypeAdapter(LearnerUnion)
FEATURES_PARAMETERS: TypeAdapter[FeaturesUnion] = TypeAdapter(FeaturesUnion)
DECISION_PARAMETERS: TypeAdapter[DecisionUnion] = TypeAdapter(DecisionUnion)


@dataclass(frozen=True)
class ScoreInterpretation:
    """How scores may be read, for a learner with certain parameters.

    Attributes:
        decisions: the decisions that make sense.
        default: the learner's own.
        why: what the scores are, in half a sentence that explains a refusal.
        when: the parameters that this holds for; empty: any.
        scale: what a score is measured by. ``zero``: positive for a label and negative against it. ``votes``:
            never negative, and k − 1 at most. ``order``: nothing but the other scores.
    """

    decisions: tuple[DecisionKind, ...]
    default: DecisionKind
    why: str
    when: Mapping[str, Any] = field(default_factory=dict)
    scale: Literal["zero", "votes", "order"] = "zero"


@dataclass(frozen=True)
class CatalogEntry:
    """One learner.

    Attributes:
        learner: the class.
        summary: one sentence.
        source: the paper, and the part of it.
        readings: of its scores; the first whose ``when`` matches holds.
        predicts_closed_sets: whether the sign rule predicts only sets that are closed under ancestors.
        supports_local_selection: whether each label can be restricted to features of its own.
    """

    learner: type[Learner]
    summary: str
    source: str
    interpretations: tuple[ScoreInterpretation, ...]
    predicts_closed_sets: bool = False
    supports_local_selection: bool = False

    def interpretation(self, parameters: Mapping[str, Any]) -> ScoreInterpretation:
        """The reading for these parameters."""
        return next(
            interpretation
            for interpretation in self.interpretations
            if all(parameters.get(name) == value for name, value in interpretation.when.items())
        )


_EVERY_BUT_CALIBRATED: tuple[DecisionKind, ...] = (
    "sign",
    "at_least_one",
    "top_k",
    "tuned_threshold",
    "single_label",
)
_ABOUT_ZERO = ScoreInterpretation(
    decisions=_EVERY_BUT_CALIBRATED,
    default="sign",
    why="its scores are positive for a label and negative against it, with no artificial label",
)
_ORDER_ONLY = ScoreInterpretation(
    decisions=_EVERY_BUT_CALIBRATED,
    default="tuned_threshold",
    why="its scores are trained to put labels in order, with no artificial label among them",
    scale="order",
)
_VOTES = ScoreInterpretation(
    decisions=("tuned_threshold", "top_k", "single_label"),
    default="tuned_threshold",
    why="its scores are votes, never negative, and say nothing about where to stop (unless calibrated)",
    scale="votes",
)
_VOTES_WITH_ARTIFICIAL_LABEL = ScoreInterpretation(
    decisions=("sign", "calibrated_label", "at_least_one", "top_k", "tuned_threshold", "single_label"),
    default="sign",
    why="its scores are votes less those of the artificial label",
    when={"calibrated": True},
)
_WITHIN_A_DOCUMENT = ScoreInterpretation(
    decisions=("single_label", "top_k"),
    default="single_label",
    why="its scores compare the labels of one document, and are not comparable between documents",
    when={"label_mode": "single_label"},
)
_DOWN_THE_TREE = ScoreInterpretation(
    decisions=("sign", "at_least_one", "top_k", "tuned_threshold"),
    default="sign",
    why="its scores are read down the label tree, where a parent scores at least as high as its children",
)
_OF_A_LABELING = ScoreInterpretation(
    decisions=("sign", "at_least_one", "top_k", "tuned_threshold"),
    default="sign",
    why="its scores compare labelings of the whole tree, where a label goes with its ancestors",
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
            "Boosting by rules of one term, each shared by all labels: a small model that can be read.",
            f"Schapire and Singer (2000), as in {_MP_BOOST}, section 2",
            (_ABOUT_ZERO,),
        ),
        CatalogEntry(
            MPBoost,
            "Boosting by rules of one term, where every label has its own each round: the first choice.",
            f"{_MP_BOOST}, section 3",
            (_ABOUT_ZERO,),
            supports_local_selection=True,
        ),
        CatalogEntry(
            AdaBoostLC,
            "Boosting that counts mistakes by a covering: which labels are judged together, and how dearly.",
            f"{_COVERING}, figure 2",
            (_ABOUT_ZERO,),
        ),
        CatalogEntry(
            MMP,
            "One perceptron a label, trained together so that relevant labels rank above the others.",
            f"Crammer and Singer (2003), as in {_PAIRWISE}, figure 1",
            (_ORDER_ONLY,),
        ),
        CatalogEntry(
            MLPP,
            "One perceptron for every pair of labels; labels are ranked by the votes that they win.",
            f"{_PAIRWISE}, section IV; the artificial label is Brinker, Fürnkranz and Hüllermeier's (2006)",
            (_VOTES_WITH_ARTIFICIAL_LABEL, _VOTES),
        ),
        CatalogEntry(
            BinaryRelevancePerceptron,
            "One perceptron a label, each learned alone, an example at a time.",
            f"{_PAIRWISE}, section II-B",
            (_ABOUT_ZERO,),
        ),
        CatalogEntry(
            NaiveBayes,
            "Multinomial naive Bayes: a label's words against all others', trained in one fast pass.",
            f"{_PAIRWISE}, section VI-A; the multi-class boosting assignment of COS 424",
            (_WITHIN_A_DOCUMENT, _ABOUT_ZERO),
        ),
        CatalogEntry(
            SVM,
            "One linear support vector machine a label, each learned alone: the strong plain baseline.",
            f"{_HIERARCHY} (the flat baseline); scikit-learn's LinearSVC",
            (_ABOUT_ZERO,),
        ),
        CatalogEntry(
            HSVM,
            "A linear support vector machine a node of the tree, trained on the examples of its parent.",
            f"{_HIERARCHY} (H-SVM)",
            (_DOWN_THE_TREE,),
            predicts_closed_sets=True,
        ),
        CatalogEntry(
            HRLS,
            "Regularised least squares a node of the tree, read from the top down.",
            f"Cesa-Bianchi, Gentile, Tironi and Zaniboni (2004), as in {_HIERARCHY} (H-RLS)",
            (_DOWN_THE_TREE,),
            predicts_closed_sets=True,
        ),
        CatalogEntry(
            HM3,
            "A maximum margin Markov network over the label tree: labels are weighed as one labeling.",
            f"{_HIERARCHY} (H-M3)",
            (_OF_A_LABELING,),
        ),
    )
}


class DecisionDescription(BaseModel):
    """Which decisions make sense for a learner with certain parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    when: dict[str, Any]
    """Values of parameters that this holds for; empty: any."""
    default: DecisionKind
    """The decision that is used where none is given."""
    kinds: list[DecisionKind]
    """All decisions that make sense."""


class LearnerDescription(BaseModel):
    """A learner, its parameters and what its scores allow."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    algorithm: str
    """The word that picks it in `learner.algorithm`."""
    summary: str
    """What it is, in a sentence."""
    source: str
    """The paper that it comes from."""
    parameters: dict[str, Any]
    """JSON Schema of its parameters."""
    defaults: dict[str, Any]
    """The parameters that are used where none are given."""
    default_decision: DecisionKind
    """The decision that is used where none is given, with the default parameters."""
    decisions: list[DecisionDescription]
    """Which decisions make sense; the first item whose `when` matches the parameters holds."""


def describe() -> list[LearnerDescription]:
    """Every learner, by ``algorithm``."""
    return [_described(entry) for _, entry in sorted(ENTRIES.items())]


def create_learner(parameters: LearnerParameters, *, seed: int = 0) -> Learner:
    """The unfitted learner that a request asks for."""
    entry = ENTRIES[parameters.algorithm]  # type: ignore[attr-defined]  # every member of the union has it
    return entry.learner.from_parameters(parameters, random_state=seed)


def create_features(parameters: FeaturesUnion) -> TextFeatures | NumericFeatures:
    """The unfitted features that a request asks for."""
    if isinstance(parameters, TextFeaturesParameters):
        return TextFeatures(parameters)
    return NumericFeatures(parameters)


def check_features(features: FeaturesUnion, learner: Learner | LearnerParameters, kind: Kind) -> None:
    """Refuse features that cannot be computed from these documents, or that the learner cannot use.

    Args:
        features: their parameters.
        learner: the learner or its parameters.
        kind: what the documents are.

    Raises:
        ParameterError: at ``/features/kind`` or ``/features/selection/policy``.
    """
    fitting = "numeric" if kind == "features" else "text"
    if features.kind != fitting:
        raise ParameterError(
            f"{features.kind} features cannot be computed from a data set of kind {kind!r}; use {fitting}",
            "/features/kind",
        )
    entry = ENTRIES.get(_algorithm(learner))
    local = isinstance(features, TextFeaturesParameters) and (
        isinstance(features.selection, InformationGain) and features.selection.policy == "local"
    )
    if local and entry is not None and not entry.supports_local_selection:
        raise ParameterError(
            f"{_algorithm(learner)} cannot give each label features of its own; select by round_robin or max",
            "/features/selection/policy",
        )


def resolve_decision(learner: Learner | LearnerParameters, decision: DecisionUnion | None) -> DecisionUnion:
    """The decision to use, or a refusal of one that makes no sense for the learner.

    Args:
        learner: the learner or its parameters.
        decision: None: the learner's own.

    Raises:
        ParameterError: at ``/decision/kind``.
    """
    interpretation = _reading(learner)
    if decision is None:
        return DECISION_PARAMETERS.validate_python({"kind": interpretation.default})
    if decision.kind not in interpretation.decisions:
        raise ParameterError(
            f"the decision {decision.kind} makes no sense for {_algorithm(learner)}: {interpretation.why};"
            f" choose one of {', '.join(interpretation.decisions)}",
            "/decision/kind",
        )
    return decision


def default_threshold(learner: Learner | LearnerParameters, n_labels: int) -> float:
    """The score above which the learner itself holds a label for relevant: 0, or half of k − 1 votes."""
    return (n_labels - 1) / 2 if _reading(learner).scale == "votes" else 0.0


def has_zero_threshold(learner: Learner | LearnerParameters) -> bool:
    """Whether a score above 0 speaks for a label, so that 0 is a threshold where none could be tuned."""
    return _reading(learner).scale == "zero"


def predicts_closed_sets(learner: Learner, decision: DecisionUnion) -> bool:
    """Whether predicted sets are sure to be closed under the ancestors of a label tree."""
    entry = ENTRIES.get(learner.algorithm)
    return entry is not None and entry.predicts_closed_sets and decision.kind == "sign"


def _reading(learner: Learner | LearnerParameters) -> ScoreInterpretation:
    entry = ENTRIES.get(_algorithm(learner))
    if entry is None:  # a learner of the caller's own
        return _ABOUT_ZERO
    return entry.interpretation(
        learner.get_params() if isinstance(learner, Learner) else learner.model_dump()
    )


def _algorithm(learner: Learner | LearnerParameters) -> str:
    return str(learner.algorithm)  # type: ignore[union-attr]  # every member of the union has it


def _described(entry: CatalogEntry) -> LearnerDescription:
    parameters = entry.learner.parameters
    defaults = parameters.model_validate({"algorithm": entry.learner.algorithm}).model_dump(mode="json")
    return LearnerDescription(
        algorithm=entry.learner.algorithm,
        summary=entry.summary,
        source=entry.source,
        parameters=parameters.model_json_schema(),
        defaults={name: value for name, value in defaults.items() if name != "algorithm"},
        default_decision=entry.interpretation(defaults).default,
        decisions=[
            DecisionDescription(when=dict(r.when), default=r.default, kinds=list(r.decisions))
            for r in entry.interpretations
        ],
    )
