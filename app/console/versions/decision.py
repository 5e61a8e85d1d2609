"""State in plain words how the label sets of a version were chosen."""

from __future__ import annotations

from models.decisions.report import DecisionCandidate, DecisionReport

THRESHOLDS = {
    "none": "none, the best label",
    "zero": "zero",
    "global": "one for all labels",
    "shrunk": "one for each label, nearer to that of all the rarer it is",
    "target": "those of the target",
}


def chosen(report: DecisionReport) -> str:
    """Return what was chosen; empty if nothing was.

    >>> chosen(DecisionReport(fallback="single_label"))
    'as `single_label`, because too few examples could be held out'
    """
    if report.fallback is not None:
        return f"as `{report.fallback}`, because too few examples could be held out"
    if report.chosen is None:
        return ""
    return f"{numbers_of_labels(report.chosen)}; thresholds: {THRESHOLDS[report.chosen.thresholds]}"


def numbers_of_labels(candidate: DecisionCandidate) -> str:
    """Return how many labels a document gets, in words.

    >>> values = {"f1_micro": 1.0, "precision_micro": 1.0, "recall_micro": 1.0, "subset_accuracy": 1.0}
    >>> for at_least_one, at_most in ((True, 1), (True, 2), (False, 2), (True, None), (False, None)):
    ...     fields = {"thresholds": "zero", "at_least_one": at_least_one, "at_most": at_most}
    ...     numbers_of_labels(DecisionCandidate.model_validate({**fields, "values": values}))
    'exactly one label'
    'at least one and at most 2 labels'
    'at most 2 labels'
    'at least one label'
    'any number of labels'
    """
    least, most = candidate.at_least_one, candidate.at_most
    if most is None:
        return "at least one label" if least else "any number of labels"
    if least:
        return "exactly one label" if most == 1 else f"at least one and at most {most} labels"
    return f"at most {most} label{'s' * (most > 1)}"
