"""The words for measures: one title and one explanation for each, on every page, chart and report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Wording(NamedTuple):
    """How pages name a measure.

    Attributes:
        title: its name.
        help: what it says, in a sentence.
    """

    title: str
    help: str


_COVERING = "Counts label sets that may be wrong in the parts that the covering allows."
_TREE = "Counts a wrong label less if the right one is near in the label tree."

MEASURES: Mapping[str, Wording] = {
    "f1_micro": Wording(
        "Overall quality (F1)",
        "From 0 to 1. It is high if few departments are missed and few are predicted wrongly.",
    ),
    "f1_macro": Wording(
        "Average quality of the labels (F1)",
        "From 0 to 1. The mean of the quality of each label: a rare label counts as much as a frequent one.",
    ),
    "f1_macro_one": Wording(
        "Average quality of the labels (F1), absent labels 1",
        "A label that neither occurs nor is predicted counts as 1.",
    ),
    "f1_macro_zero": Wording(
        "Average quality of the labels (F1), absent labels 0",
        "A label that neither occurs nor is predicted counts as 0.",
    ),
    "precision_micro": Wording("Precision", "Share of the predicted departments that are right."),
    "precision_macro": Wording("Average precision of the labels", "The mean of the precision of each label."),
    "recall_micro": Wording("Recall", "Share of the right departments that are predicted."),
    "recall_macro": Wording("Average recall of the labels", "The mean of the recall of each label."),
    "accuracy": Wording("Accuracy", "Share of right answers to whether a document has a label."),
    "average_precision": Wording(
        "Average precision of the ranking", "High if the right labels come first in the ranking."
    ),
    "hamming_loss": Wording("Hamming loss", "Share of wrong answers to whether a document has a label."),
    "subset_zero_one": Wording(
        "Messages with a wrong department", "Share of the messages whose departments are not exactly right."
    ),
    "one_error": Wording("Wrong first label", "Share of the documents whose first label is wrong."),
    "coverage": Wording("Coverage", "How far down the ranking the last right label is."),
    "is_error": Wording("Imperfect rankings", "Share of the rankings that are not perfect."),
    "error_set_size": Wording("Wrongly ordered pairs", "Number of pairs of labels in the wrong order."),
    "margin": Wording("Ranking margin", "Distance in the ranking between right and wrong labels."),
    "covering_error": Wording("Covering error", _COVERING),
    "covering_loss": Wording("Covering loss", _COVERING),
    "zero_one": Wording("Wrong label sets in the tree", "Share of the documents whose labels are not right."),
    "symmetric_difference": Wording("Wrong labels in the tree", "Number of missed and wrong labels."),
    "hierarchical": Wording("Hierarchical loss", _TREE),
    "hierarchical_sibling": Wording("Hierarchical loss by siblings", _TREE),
    "hierarchical_subtree": Wording("Hierarchical loss by subtrees", _TREE),
    "simplified_hierarchical": Wording("Simplified hierarchical loss", _TREE),
    "simplified_hierarchical_sibling": Wording("Simplified hierarchical loss by siblings", _TREE),
    "simplified_hierarchical_subtree": Wording("Simplified hierarchical loss by subtrees", _TREE),
    "expected_calibration_error": Wording(
        "Calibration error of labels", "Mean distance of the probabilities of labels from what came true."
    ),
    "brier_score": Wording("Brier score of labels", "Mean squared error of the probabilities of labels."),
    "log_loss": Wording("Log loss of labels", "High if a confident probability of a label was wrong."),
    "set_expected_calibration_error": Wording(
        "Calibration error of label sets", "Mean distance of set probabilities from what came true."
    ),
    "set_brier_score": Wording("Brier score of label sets", "Mean squared error of set probabilities."),
    "set_log_loss": Wording("Log loss of label sets", "High if a confident set probability was wrong."),
    **{
        f"coverage_at_precision_{share}": Wording(
            f"Share handled automatically at {share} % precision",
            f"Share of the messages that need no person if {share} % of them must be exactly right.",
        )
        for share in (90, 95, 99)
    },
}
"""The words for every measure of ``evaluate``."""

RIGHT_SETS = Wording(
    "Messages with every department right",
    "Share of the messages for which no department is missed and none is wrong.",
)
"""The words for ``1 - subset_zero_one``, which says the same in a way that people ask for."""

_PARTS = {"test": "held out", "train": "training"}


def measure_title(name: str) -> str:
    """Return the title of a measure, also of one with a part or a covering, or that only a learner knows.

    >>> measure_title("f1_micro"), measure_title("test.f1_micro"), measure_title("loss_bound")
    ('Overall quality (F1)', 'Overall quality (F1), held out', 'Loss bound')
    """
    if name in MEASURES:
        return MEASURES[name].title
    if name.startswith("held_out_"):
        return f"{measure_title(name.removeprefix('held_out_'))}, held out"
    first, _, rest = name.partition(".")
    if rest and first in _PARTS:
        return f"{measure_title(rest)}, {_PARTS[first]}"
    if rest:
        return f"{measure_title(first)}, {rest}"
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]
