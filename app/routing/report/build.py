"""Build the report of a router from facts about its decisions. No database access."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.routing.report.drift import DriftSums
from app.routing.report.facts import DecisionCount, Facts, FeedbackFact, LabelCount, VersionKey
from app.routing.report.measures import (
    Outcomes,
    ReliabilitySums,
    coarse_bin,
    feedback_coverage,
    share_of,
)
from app.routing.report.schemas import ReportBy, ReportGroup, ShadowAgreement
from models.measures.calibration import N_BINS
from models.pipeline.reference import SHARE_BINS

MAX_DEPARTMENTS = 500
"""Maximum number of departments in a report: those with the most messages."""

ALL = "all"


@dataclass
class _Group:
    """The sums of one group."""

    outcomes: Outcomes = field(default_factory=Outcomes)
    reliability: ReliabilitySums = field(default_factory=ReliabilitySums)
    drift: DriftSums = field(default_factory=DriftSums)
    shadows: dict[tuple[VersionKey, int], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )

    def add_shadow(self, item: DecisionCount | LabelCount) -> None:
        if item.shadow is not None and item.shadow_agrees is not None:
            sums = self.shadows[item.version, item.shadow]
            sums[0] += item.count * item.shadow_agrees
            sums[1] += item.count

    def agreements(self) -> list[ShadowAgreement]:
        found = []
        for ((model, version), shadow), (agreeing, n) in sorted(self.shadows.items(), key=repr):
            agreement = share_of(agreeing, n)
            if agreement is not None:
                found.append(
                    ShadowAgreement(model=model, version=version, shadow=shadow, agreement=agreement)
                )
        return found


@dataclass(frozen=True)
class BuiltReport:
    """The parts of a report that come from the facts; see ``RouterReport``."""

    total: ReportGroup
    groups: list[ReportGroup]
    omitted_groups: int
    notes: list[str]


def build_report(facts: Facts, by: ReportBy, weeks: Sequence[str]) -> BuiltReport:
    """Build a report. Each kind of facts is read once, and only sums are kept in memory.

    Args:
        facts: the facts about the decisions.
        by: what the groups are.
        weeks: the names of the weeks of the window, in order. A report by week has a group for each.
    """
    total = _Group()
    groups: dict[str, _Group] = {}
    if by == "week":
        groups = {week: _Group() for week in weeks}

    def of(item: DecisionCount | LabelCount | FeedbackFact) -> list[_Group]:
        if by == "department":
            return [total]
        name = weeks[item.week] if by == "week" else version_name(item.version)
        return [total, groups.setdefault(name, _Group())]

    for item in facts.decisions:
        for group in of(item):
            _add_decisions(group, item)
    for label_count in facts.labels:
        for group in of(label_count):
            group.drift.add_label(label_count)
        if by == "department":
            _add_label(groups.setdefault(label_count.label, _Group()), label_count)
    for unknown in facts.unknown_words:
        names = (
            []
            if by == "department"
            else [weeks[unknown.week] if by == "week" else version_name(unknown.version)]
        )
        for group in [total, *(groups.setdefault(name, _Group()) for name in names)]:
            group.drift.add_unknown_words(unknown.version, unknown.bin, unknown.share_sum, unknown.count)
    for fact in facts.feedback:
        for group in of(fact):
            both = len(fact.correct.intersection(fact.predicted))
            group.outcomes.add_labels(fact.disposition, both, len(fact.predicted), len(fact.correct))
        if by == "department":
            _add_feedback(groups, fact)

    notes = _notes(facts, total)
    shown = ReportGroup(name=ALL, **_common(total), drift=total.drift.drift(facts.references, with_bins=True))
    if by == "department":
        departments = _departments(groups, facts, total)
        return BuiltReport(
            shown, departments[:MAX_DEPARTMENTS], max(0, len(departments) - MAX_DEPARTMENTS), notes
        )
    others = [
        ReportGroup(name=name, **_common(group), drift=group.drift.drift(facts.references, with_bins=False))
        for name, group in (groups.items() if by == "week" else sorted(groups.items(), key=_by_version))
    ]
    return BuiltReport(shown, others, 0, notes)


def summary_of(total: ReportGroup) -> str:
    """Return how many of the messages that people have checked were wrong, as a sentence.

    Args:
        total: all messages of the report.
    """
    accuracy = total.quality[0].set_accuracy if total.quality else None
    if accuracy is None:
        return "No message was checked yet." if total.messages else "There are no messages in this time."
    n_wrong = accuracy.of - accuracy.count
    messages = "message" if accuracy.of == 1 else "messages"
    return f"{n_wrong:,} of {accuracy.of:,} checked {messages} {'was' if n_wrong == 1 else 'were'} wrong."


def version_name(version: VersionKey) -> str:
    """Return the name of the group of a version."""
    model, number = version
    return "no version" if number is None else f"{model} {number}"


def _by_version(item: tuple[str, _Group]) -> tuple[str, int]:
    model, _, number = item[0].rpartition(" ")
    return (model, int(number)) if number.isdecimal() else ("~", 0)


def _add_decisions(group: _Group, item: DecisionCount) -> None:
    group.outcomes.add(item.disposition, item.right, item.count)
    group.drift.add(item.version, item.disposition, item.probability_bin, item.count)
    group.add_shadow(item)
    if item.right is not None and item.probability_bin is not None:
        group.reliability.add(
            coarse_bin(item.probability_bin, SHARE_BINS), item.probability_sum, item.right, item.count
        )


def _add_label(group: _Group, item: LabelCount) -> None:
    group.outcomes.add(item.disposition, item.right, item.count)
    group.add_shadow(item)


def _add_feedback(groups: dict[str, _Group], fact: FeedbackFact) -> None:
    """Add a message to the departments that are predicted or correct."""
    for label in {*fact.predicted, *fact.correct}:
        group = groups.setdefault(label, _Group())
        predicted, correct = label in fact.predicted, label in fact.correct
        group.outcomes.add_labels(fact.disposition, predicted and correct, predicted, correct)
        probability = fact.predicted.get(label)
        if probability is not None:
            bin_ = min(int(probability * N_BINS), N_BINS - 1)
            group.reliability.add(bin_, probability, correct)


def _common(group: _Group) -> dict[str, object]:
    return {
        "messages": group.outcomes.messages.total(),
        "dispositions": group.outcomes.dispositions(),
        "quality": group.outcomes.quality(),
        "estimated_set_accuracy": group.outcomes.estimated_set_accuracy(),
        "calibration": group.reliability.calibration(),
        "shadows": group.agreements(),
    }


def _departments(groups: Mapping[str, _Group], facts: Facts, total: _Group) -> list[ReportGroup]:
    """Return the departments, those with the most messages first."""
    expected, n_expected = total.drift.expected_labels(facts.references)
    n_messages = total.outcomes.messages.total()
    names = sorted({*groups, *expected}, key=lambda name: (-_n_messages(groups.get(name)), name))
    return [
        ReportGroup(
            name=name,
            share=share_of(_n_messages(groups.get(name)), n_messages),
            expected_share=expected.get(name, 0.0) / n_expected if n_expected else None,
            **_common(groups.get(name, _Group())),
        )
        for name in names
    ]


def _n_messages(group: _Group | None) -> int:
    return 0 if group is None else group.outcomes.messages.total()


def _notes(facts: Facts, total: _Group) -> list[str]:
    outcomes = total.outcomes
    n_messages = outcomes.messages.total()
    if not n_messages:
        return ["The router has no decisions in this window."]
    notes = []
    coverage = feedback_coverage(outcomes)
    n_feedback = sum(n for n, _ in coverage.values())
    parts = "; ".join(f"{name}: {n:,} of {of:,}" for name, (n, of) in coverage.items())
    if not n_feedback:
        notes.append("No message has feedback, so the quality is unknown.")
    else:
        text = f"{n_feedback:,} of {n_messages:,} messages have feedback ({parts})."
        shares = [n / of for n, of in coverage.values()]
        if max(shares) > min(shares):
            text += (
                " They are not a random sample: compare the outcomes with each other, and use the "
                "estimated share with every department right."
            )
        notes.append(text)
        missing = [name for name, (n, _) in coverage.items() if not n]
        if missing:
            notes.append(
                f"No message with the outcome {' or '.join(missing)} has feedback, so the share of all "
                "messages with every department right cannot be estimated. Review the random sample of the "
                "router, too."
            )
    notes += _notes_on_references(facts, total)
    undecided = sum(count for version, count in total.drift.messages.items() if version[1] is None)
    if undecided:
        notes.append(f"No version decided on {undecided:,} messages, which went to the fallback.")
    return notes


def _notes_on_references(facts: Facts, total: _Group) -> list[str]:
    without: Counter[str] = Counter()
    true_labels = []
    for version in sorted(total.drift.messages, key=repr):
        known = facts.references.get(version)
        if version[1] is not None and (known is None or known.reference is None):
            without[version_name(version)] += total.drift.messages[version]
        elif known is not None and known.reference is not None and known.reference.source == "training":
            true_labels.append(version_name(version))
    notes = []
    if without:
        notes.append(
            f"Drift is not measured on the messages of deleted versions ({without.total():,}): "
            f"{', '.join(without)}."
        )
    if true_labels:
        notes.append(
            f"These versions held no examples out, so their expected label shares are the true ones of the "
            f"training: {', '.join(true_labels)}. Errors of the version look like drift. Train with the "
            "decision auto, or with validation examples."
        )
    return notes
