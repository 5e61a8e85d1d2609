"""Say in words how a new version compares with the live one, and whether it was put live."""

from __future__ import annotations

from app.pages.measures import measure_title
from app.registry.schemas import PromotionOutcome, VersionComparison
from models.measures.directions import is_better


def sentences(outcome: PromotionOutcome, what: str = "messages") -> list[str]:
    """Return sentences about the promotion of a version.

    Args:
        outcome: the outcome.
        what: what the examples are.

    >>> print(*sentences(PromotionOutcome(promoted=True, reason="it is the first version")))
    The new version was put live: it is the first version.
    """
    compared = outcome.comparison
    if compared is None or compared.new_right is None or compared.live_right is None:
        return [f"The new version was {'' if outcome.promoted else 'not '}put live: {outcome.reason}."]
    live = f"version {compared.live_version}"
    new = f"the new version gets {compared.new_right:,} fully right"
    said = [
        f"Of {compared.examples:,} test {what}, {new}, and {live}, which was live, {compared.live_right:,}.",
        f"The new version was {'' if outcome.promoted else 'not '}put live, because {_because(compared)}.",
    ]
    if compared.left_out:
        said.append(f"{compared.left_out:,} other {what} do not count, because {live} has learned from them.")
    if compared.left_out_selected:
        said.append(
            f"{compared.left_out_selected:,} other {what} do not count: they were reviewed because a version "
            "was not sure or wrong, so it would seem worse than it is."
        )
    return said


def _because(compared: VersionComparison) -> str:
    """Return why the version was promoted or not, without the full stop."""
    new, live = compared.new_value, compared.live_value
    assert new is not None, "the versions were compared"  # noqa: S101
    assert live is not None, "the versions were compared"  # noqa: S101
    values = f"{measure_title(compared.metric)}: {new:.3f} and {live:.3f}"
    if not is_better(compared.metric, new, live):
        return f"it is not better ({values})"
    if abs(new - live) < compared.at_least:
        return f"it is better by less than {compared.at_least:g} ({values})"
    if compared.p_value is None or compared.level is None or compared.p_value > compared.level:
        return f"the difference ({values}) can be chance"
    return f"it is better ({values}), and the difference is too large for chance"
