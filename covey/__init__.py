"""Multilabel classification: data sets, features, learners, decisions, measures and saved models.

This package is for notebooks and scripts. It gives short names to the parts of the library that the service
trains and predicts with::

    import covey

    mail = covey.Examples("text", ["invoice is wrong", "parcel is late"], [("billing",), ("shipping",)])
    pipeline = covey.Pipeline().fit(mail)

Everything is imported at its first use, so that ``import covey`` takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covey._api import *  # noqa: F403 - the names of __all__

__all__ = [  # noqa: F405
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'covey' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - see above

        return version("covey")
    from covey import _api  # noqa: PLC0415

    return getattr(_api, name)


def __dir__() -> list[str]:
    return sorted(__all__)
