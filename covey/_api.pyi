# Written by tests/support/library_types.py from the declarations of the parameters.

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from covey import decisions, errors, measures
from models.artifact import load, save
from models.base import Context, Learner
from models.baselines.naive_bayes import NaiveBayes as _NaiveBayes
from models.baselines.svm import SVM as _SVM
from models.boosting.adaboost_lc import AdaBoostLC as _AdaBoostLC
from models.boosting.adaboost_mh import AdaBoostMH as _AdaBoostMH
from models.boosting.mp_boost import MPBoost as _MPBoost
from models.catalog import describe as learners
from models.data.examples import Examples, ExampleSource, FeatureRows
from models.data.ingestion.in_memory import read_examples
from models.features import NumericFeatures as _NumericFeatures, TextFeatures as _TextFeatures
from models.hierarchy.h_m3 import HM3 as _HM3
from models.hierarchy.h_rls import HRLS as _HRLS
from models.hierarchy.h_svm import HSVM as _HSVM
from models.labels import LabelTree
from models.mail import Email, MailDocument, read_email, read_message
from models.measures.evaluation import Evaluation, evaluate
from models.perceptrons import MLPP as _MLPP, MMP as _MMP, BinaryRelevancePerceptron as _BinaryRelevancePerceptron
from models.pipeline import Pipeline, Prediction
from models.pipeline.partial_fit import partial_fit
from models.splits import stratified_folds, stratified_split
from models.boosting.parameters import EarlyStopping
from models.covering.schema import GroupsCovering
from models.covering.schema import HammingCovering
from models.covering.schema import RulesCovering
from models.covering.schema import TwoSetsCovering
from models.covering.schema import WeightedNegativeCovering
from models.covering.schema import WeightedPositiveCovering
from models.covering.schema import ZeroOneCovering
from models.features.numeric import NumericFeaturesParameters
from models.features.selection import DocumentFrequency
from models.features.selection import InformationGain
from models.features.selection import NoSelection
from models.features.selection import Rocchio
from models.features.text import TextFeaturesParameters
from models.hierarchy.kernels import LinearKernel
from models.hierarchy.kernels import PolynomialKernel
from models.hierarchy.kernels import RBFKernel
from models.mail.fields import MailFieldsParameters
from models.text.hashing import HashingParameters
from models.text.parameters import AnalyzerParameters

__version__: str

__all__ = [
    "HM3",
    "HRLS",
    "HSVM",
    "MLPP",
    "MMP",
    "SVM",
    "AdaBoostLC",
    "AdaBoostMH",
    "BinaryRelevancePerceptron",
    "Context",
    "Email",
    "Evaluation",
    "ExampleSource",
    "Examples",
    "FeatureRows",
    "LabelTree",
    "Learner",
    "MPBoost",
    "MailDocument",
    "NaiveBayes",
    "NumericFeatures",
    "Pipeline",
    "Prediction",
    "TextFeatures",
    "__version__",
    "decisions",
    "errors",
    "evaluate",
    "learners",
    "load",
    "measures",
    "partial_fit",
    "read_email",
    "read_examples",
    "read_message",
    "save",
    "stratified_folds",
    "stratified_split",
]

class AdaBoostLC(_AdaBoostLC):
    def __init__(
        self,
        rounds: int = 50,
        covering: Mapping[str, Any] | HammingCovering | ZeroOneCovering | TwoSetsCovering | WeightedPositiveCovering | WeightedNegativeCovering | GroupsCovering | RulesCovering | None = None,
        template: Literal["parallel", "sequential"] | Sequence[Sequence[str] | Mapping[str, float]] = "parallel",
        smoothing: float | None = None,
    ) -> None: ...

class AdaBoostMH(_AdaBoostMH):
    def __init__(
        self,
        rounds: int = 200,
        variant: Literal["real", "real_abstaining", "discrete"] = "real",
        smoothing: float | None = None,
        stump: Literal["presence", "threshold", "auto"] = "auto",
        bins: int | None = None,
        early_stopping: Mapping[str, Any] | EarlyStopping | None = None,
        random_state: int = 0,
    ) -> None: ...

class BinaryRelevancePerceptron(_BinaryRelevancePerceptron):
    def __init__(
        self,
        epochs: int = 1,
        margin: float = 0.0,
        initial: Literal["zeros", "random"] = "zeros",
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None: ...

class HM3(_HM3):
    def __init__(
        self,
        C: float = 1.0,
        loss: Literal["symmetric_difference", "simplified_hierarchical"] = "simplified_hierarchical",
        scaling: Literal["uniform", "sibling", "subtree"] = "uniform",
        kernel: Literal["linear", "polynomial", "rbf"] | Mapping[str, Any] | LinearKernel | PolynomialKernel | RBFKernel = "linear",
        gap: float = 0.01,
        passes: int = 50,
        random_state: int = 0,
    ) -> None: ...

class HRLS(_HRLS):
    def __init__(
        self,
        ridge: float = 1.0,
    ) -> None: ...

class HSVM(_HSVM):
    def __init__(
        self,
        C: float = 1.0,
        class_weight: Literal["none", "balanced"] = "none",
        precision: Literal["float64", "float32"] = "float64",
        prune: float = 0.0,
        random_state: int = 0,
    ) -> None: ...

class MLPP(_MLPP):
    def __init__(
        self,
        epochs: int = 1,
        voting: Literal["max_wins", "weighted"] = "max_wins",
        calibrated: bool = False,
        margin: float = 0.0,
        initial: Literal["zeros", "random"] = "zeros",
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None: ...

class MMP(_MMP):
    def __init__(
        self,
        epochs: int = 1,
        loss: Literal["is_error", "error_set_size", "margin", "average_precision"] = "is_error",
        penalty: Literal["uniform", "proportional", "max"] = "uniform",
        margin: float = 0.0,
        initial: Literal["zeros", "random"] = "zeros",
        shuffle: bool = False,
        random_state: int = 0,
    ) -> None: ...

class MPBoost(_MPBoost):
    def __init__(
        self,
        rounds: int = 200,
        variant: Literal["real", "real_abstaining", "discrete"] = "real",
        smoothing: float | None = None,
        stump: Literal["presence", "threshold", "auto"] = "auto",
        bins: int | None = None,
        early_stopping: Mapping[str, Any] | EarlyStopping | None = None,
        random_state: int = 0,
    ) -> None: ...

class NaiveBayes(_NaiveBayes):
    def __init__(
        self,
        alpha: float = 1.0,
        label_mode: Literal["multilabel", "single_label"] = "multilabel",
        class_weight: Literal["none", "balanced"] = "none",
    ) -> None: ...

class SVM(_SVM):
    def __init__(
        self,
        C: float = 1.0,
        class_weight: Literal["none", "balanced"] = "none",
        precision: Literal["float64", "float32"] = "float64",
        prune: float = 0.0,
        random_state: int = 0,
    ) -> None: ...

class NumericFeatures(_NumericFeatures):
    def __init__(
        self,
        parameters: NumericFeaturesParameters | None = None,
        *,
        scaling: Literal["none", "max_abs", "standard", "unit"] = "none",
        interactions: Literal[1, 2] = 1,
    ) -> None: ...

class TextFeatures(_TextFeatures):
    def __init__(
        self,
        parameters: TextFeaturesParameters | None = None,
        *,
        weighting: Literal["binary", "tf", "tfidf", "pivoted"] = "tfidf",
        scaling: Literal["none", "unit"] = "none",
        sublinear_tf: bool = False,
        smooth_idf: bool = False,
        analyzer: Mapping[str, Any] | AnalyzerParameters = ...,
        min_df: int | float = 1,
        max_df: int | float | None = None,
        max_features: int | None = None,
        hashing: Mapping[str, Any] | HashingParameters | None = None,
        selection: Mapping[str, Any] | NoSelection | InformationGain | Rocchio | DocumentFrequency = ...,
        fields: Mapping[str, Any] | MailFieldsParameters = ...,
    ) -> None: ...
