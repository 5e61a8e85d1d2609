"""Coverings as JSON: their errors, and the messages about invalid coverings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from growth import check_linear
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.sparse import csr_array

from models.base import Context
from models.boosting.adaboost_lc import AdaBoostLC
from models.covering import parse_covering
from models.covering.schema import MAX_RULES
from models.errors import ParameterError
from models.measures.covering import covering_error, covering_loss

LABELS = ["basketball", "currencies", "football", "markets"]

SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT = {
    "kind": "rules",
    "rules": [
        {
            "when": {"has": "basketball"},
            "cover": [{"each": ["football", "basketball"]}, {"all": ["markets", "currencies"]}],
        },
        {"when": "otherwise", "cover": [{"positives": "all", "weight": 2}, {"negatives": "each"}]},
    ],
}


def sets(*rows: set[str]) -> Any:
    return csr_array(np.array([[label in row for label in LABELS] for row in rows], dtype=np.int8))


def error(true: set[str], predicted: set[str], covering: Any) -> float:
    return covering_error(sets(true), sets(predicted), covering, LABELS)


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        ({"basketball"}, 0),
        ({"basketball", "football"}, 1),
        (set(), 1),
        ({"football"}, 2),
        ({"basketball", "markets"}, 1),
        ({"basketball", "markets", "currencies"}, 1),
        ({"football", "markets", "currencies"}, 3),
    ],
)
def test_basketball_stories_count_sport_by_label_and_economy_as_one_unit(
    predicted: set[str], expected: int
) -> None:
    assert error({"basketball"}, predicted, SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT) == expected


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [({"markets", "football"}, 0), ({"markets"}, 2), (set(), 2), ({"basketball", "currencies"}, 4)],
)
def test_other_stories_use_the_second_rule(predicted: set[str], expected: int) -> None:
    assert error({"markets", "football"}, predicted, SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT) == expected


@pytest.mark.parametrize(
    ("covering", "expected"),
    [
        ({"kind": "hamming"}, 3),
        ({"kind": "zero_one"}, 1),
        ({"kind": "two_sets"}, 2),
        ({"kind": "weighted_positive", "weight": 6}, 7),
        ({"kind": "weighted_negative", "weight": 4}, 6),
        ({"kind": "weighted_positive"}, 7),
        ({"kind": "weighted_negative"}, 6),
        ({"kind": "groups", "groups": [{"labels": LABELS[:2]}, {"labels": LABELS[1:], "weight": 5}]}, 6),
    ],
)
def test_covering_error_of_each_kind(covering: Any, expected: int) -> None:
    # Both relevant labels are missing, and one of two irrelevant labels is predicted.
    assert error({"basketball", "markets"}, {"football"}, covering) == expected


def test_the_first_matching_rule_applies() -> None:
    one, three = [{"all": LABELS}], [{"all": LABELS, "weight": 3}]
    rules = [
        {"when": {"count": {"at_least": 2}}, "cover": one},
        {"when": {"has": "markets"}, "cover": three},
        {"when": "otherwise", "cover": [{"all": LABELS, "weight": 7}]},
    ]
    covering = {"kind": "rules", "rules": rules}
    assert error({"markets", "football"}, set(), covering) == 1
    assert error({"markets"}, set(), covering) == 3
    assert error({"football"}, set(), covering) == 7


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        ({"has": "markets"}, [True, True, False, False]),
        ({"has_not": "markets"}, [False, False, True, True]),
        ({"any": ["markets", "football"]}, [True, True, True, False]),
        ({"every": ["markets", "football"]}, [True, False, False, False]),
        ({"count": {"at_least": 1}}, [True, True, True, False]),
        ({"count": {"at_most": 1}}, [False, True, True, True]),
        ({"count": {"at_least": 1, "at_most": 1}}, [False, True, True, False]),
    ],
)
def test_conditions(when: Any, matches: list[bool]) -> None:
    cover = [{"all": LABELS}]
    rules = [{"when": when, "cover": cover}, {"when": "otherwise", "cover": cover}]
    compiled = parse_covering({"kind": "rules", "rules": rules}).compile(LABELS)
    stories = sets({"markets", "football"}, {"markets"}, {"football"}, set())
    assert (compiled.assign(stories) == 0).tolist() == matches


def rules(*rules: Any) -> dict[str, Any]:
    return {"kind": "rules", "rules": list(rules)}


OTHERWISE = {"when": "otherwise", "cover": [{"all": LABELS}]}


@pytest.mark.parametrize(
    ("covering", "pointer", "named"),
    [
        (
            {"kind": "groups", "groups": [{"labels": ["basketball", "football"]}, {"labels": ["markets"]}]},
            "/learner/covering/groups",
            "currencies",
        ),
        (
            rules({"when": {"has": "markets"}, "cover": [{"each": ["football", "markets"]}]}, OTHERWISE),
            "/learner/covering/rules/0/cover",
            "basketball, currencies",
        ),
        (
            rules(
                {"when": {"has": "markets"}, "cover": [{"all": LABELS}]},
                {"when": "otherwise", "cover": [{"positives": "all"}, {"all": ["football"]}]},
            ),
            "/learner/covering/rules/1/cover",
            "basketball, currencies, markets",
        ),
        (
            rules({"when": {"any": ["markets", "football"]}, "cover": [{"positives": "each"}]}, OTHERWISE),
            "/learner/covering/rules/0/cover",
            "basketball, currencies, football, markets",
        ),
    ],
)
def test_error_names_uncovered_labels_and_their_rule(covering: Any, pointer: str, named: str) -> None:
    with pytest.raises(ParameterError, match=f"leaves? labels uncovered: {named};") as raised:
        AdaBoostLC(covering=covering).fit(np.eye(4), np.eye(4, dtype=int), context=Context(labels=LABELS))
    assert raised.value.pointer == pointer


@pytest.mark.parametrize(
    "covering",
    [
        rules({"when": {"has": "markets"}, "cover": [{"positives": "all"}, {"each": LABELS[:3]}]}, OTHERWISE),
        rules(
            {"when": {"has_not": "markets"}, "cover": [{"negatives": "all"}, {"each": LABELS[:3]}]}, OTHERWISE
        ),
        rules(
            {"when": {"has": "markets"}, "cover": [{"all": LABELS}]},
            {"when": "otherwise", "cover": [{"negatives": "each"}, {"all": LABELS[:3]}]},
        ),
        rules({"when": {"count": {"at_most": 0}}, "cover": [{"negatives": "all"}]}, OTHERWISE),
        rules({"when": {"every": LABELS}, "cover": [{"positives": "all"}]}, OTHERWISE),
        rules(
            {"when": {"any": LABELS}, "cover": [{"all": LABELS}]},
            {"when": "otherwise", "cover": [{"negatives": "each"}]},
        ),
    ],
)
def test_a_condition_can_imply_that_a_label_is_covered(covering: Any) -> None:
    compiled = parse_covering(covering).compile(LABELS)
    every = csr_array(
        np.array([[number >> bit & 1 for bit in range(4)] for number in range(16)], dtype=np.int8)
    )
    relevant = every.toarray()
    for column in range(4):  # if only this label is wrong, there is an error for every label set
        scores = np.where(relevant, 1.0, -1.0)
        scores[:, column] *= -1
        assert (compiled.errors(every, scores) >= 1).all()


@pytest.mark.parametrize(
    ("covering", "pointer"),
    [
        (
            {"kind": "groups", "groups": [{"labels": LABELS}, {"labels": ["markets", "tennis"]}]},
            "groups/1/labels/1",
        ),
        (rules({"when": {"has": "tennis"}, "cover": [{"all": LABELS}]}, OTHERWISE), "rules/0/when/has"),
        (
            rules({"when": {"has_not": "tennis"}, "cover": [{"all": LABELS}]}, OTHERWISE),
            "rules/0/when/has_not",
        ),
        (
            rules({"when": {"any": ["markets", "tennis"]}, "cover": [{"all": LABELS}]}, OTHERWISE),
            "rules/0/when/any/1",
        ),
        (
            rules({"when": {"every": ["tennis"]}, "cover": [{"all": LABELS}]}, OTHERWISE),
            "rules/0/when/every/0",
        ),
        (
            rules({"when": {"has": "markets"}, "cover": [{"all": LABELS}, {"each": ["tennis"]}]}, OTHERWISE),
            "rules/0/cover/1/each/0",
        ),
        (rules({"when": "otherwise", "cover": [{"all": [*LABELS, "tennis"]}]}), "rules/0/cover/0/all/4"),
    ],
)
def test_error_points_to_unknown_labels(covering: Any, pointer: str) -> None:
    with pytest.raises(ParameterError, match="'tennis'") as raised:
        AdaBoostLC(covering=covering).fit(np.eye(4), np.eye(4, dtype=int), context=Context(labels=LABELS))
    assert raised.value.pointer == f"/learner/covering/{pointer}"


GROUPS = {"kind": "groups", "groups": [{"labels": ["currencies", "markets"]}, {"labels": ["football"]}]}


def error_pointer(covering: Any, certain: Sequence[str], possible: Sequence[str]) -> str | None:
    try:
        parse_covering(covering).check(certain, set(possible))
    except ParameterError as error:
        return error.pointer
    return None


def test_check_raises_only_certain_errors_before_the_training_labels_are_known() -> None:
    named = ["currencies", "football", "markets"]
    assert error_pointer(GROUPS, [], named) is None
    assert error_pointer(GROUPS, named, LABELS) is None  # basketball may have no training example
    assert error_pointer(GROUPS, ["basketball"], LABELS) == "/learner/covering/groups"
    assert error_pointer(GROUPS, [], ["currencies", "football"]) == "/learner/covering/groups/0/labels/1"
    assert error_pointer({"kind": "zero_one"}, LABELS, LABELS) is None


def test_conditions_on_the_number_of_labels_are_checked_only_if_all_labels_are_known() -> None:
    every = {"when": {"count": {"at_least": 4}}, "cover": [{"positives": "all"}]}
    covering = rules(every, {"when": "otherwise", "cover": [{"positives": "each"}, {"negatives": "each"}]})
    five = [*LABELS, "tennis"]
    assert error_pointer(covering, LABELS, LABELS) is None
    assert error_pointer(covering, LABELS, five) is None  # four of four, or of five
    assert error_pointer(covering, five, five) == "/learner/covering/rules/0/cover"


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_compile_raises_every_error_that_check_raises(data: st.DataObject) -> None:
    labels = [*LABELS, "tennis"]
    some = st.lists(st.sampled_from(labels), min_size=1, max_size=3, unique=True)
    when = st.one_of(
        st.builds(lambda label: {"has": label}, st.sampled_from(labels)),
        st.builds(lambda label: {"has_not": label}, st.sampled_from(labels)),
        st.builds(lambda names: {"any": names}, some),
        st.builds(lambda names: {"every": names}, some),
        st.builds(lambda n: {"count": {"at_least": n}}, st.integers(0, 5)),
        st.builds(lambda n: {"count": {"at_most": n}}, st.integers(0, 5)),
    )
    element = st.one_of(
        st.builds(lambda names: {"all": names}, some),
        st.builds(lambda how: {"positives": how}, st.sampled_from(["all", "each"])),
        st.builds(lambda how: {"negatives": how}, st.sampled_from(["all", "each"])),
    )
    cover = st.lists(element, min_size=1, max_size=3)
    first = data.draw(st.lists(st.builds(lambda w, c: {"when": w, "cover": c}, when, cover), max_size=2))
    covering = rules(*first, {"when": "otherwise", "cover": data.draw(cover)})
    certain = data.draw(st.lists(st.sampled_from(labels), unique=True))
    others = [label for label in labels if label not in certain]
    trained = sorted(
        {*certain, *data.draw(st.lists(st.sampled_from(others), unique=True) if others else st.just([]))}
    )
    if trained and error_pointer(covering, certain, labels) is not None:
        with pytest.raises(ParameterError):
            parse_covering(covering).compile(trained)


def test_labels_without_names_have_their_indices_as_names() -> None:
    covering = {"kind": "groups", "groups": [{"labels": ["0", "1"]}, {"labels": ["2"]}]}
    X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    assert AdaBoostLC(rounds=2, covering=covering).fit(X, Y).n_labels_ == 3
    with pytest.raises(ParameterError, match="'3'"):
        AdaBoostLC(covering={"kind": "groups", "groups": [{"labels": ["3"]}]}).fit(X, Y)


COVER = [{"all": LABELS}]


@pytest.mark.parametrize(
    ("covering", "message"),
    [
        ({"kind": "jaccard"}, "does not match any of the expected tags"),
        ({}, "kind"),
        ({"kind": "hamming", "weight": 2}, "Extra inputs"),
        ({"kind": "weighted_positive", "weight": 0}, "greater than or equal to 1"),
        ({"kind": "weighted_negative", "weight": 1.5}, "valid integer"),
        ({"kind": "groups", "groups": []}, "at least 1"),
        ({"kind": "groups", "groups": [{"labels": []}]}, "at least 1"),
        ({"kind": "groups", "groups": [{"labels": ["a", "a"]}]}, "twice"),
        (rules(), "at least 1"),
        (rules({"when": {"has": "a"}, "cover": COVER}), "last rule must be"),
        (rules(OTHERWISE, OTHERWISE), "put it last"),
        (rules({"when": "always", "cover": COVER}, OTHERWISE), "has, has_not, any, every and count"),
        (rules({"when": {"lacks": "a"}, "cover": COVER}, OTHERWISE), "has, has_not, any, every and count"),
        (rules({"when": {"has": "a", "any": ["b"]}, "cover": COVER}, OTHERWISE), "Extra inputs"),
        (rules({"when": {"count": {}}, "cover": COVER}, OTHERWISE), "at_least, at_most or both"),
        (rules({"when": {"count": {"at_least": 3, "at_most": 2}}, "cover": COVER}, OTHERWISE), "smaller"),
        (rules({"when": "otherwise", "cover": []}), "at least 1"),
        (rules({"when": "otherwise", "cover": [{"some": LABELS}]}), "each, all, positives and negatives"),
        (rules({"when": "otherwise", "cover": [{"each": LABELS, "all": LABELS}]}), "Extra inputs"),
        (rules({"when": "otherwise", "cover": [{"positives": "some"}]}), "'all' or 'each'"),
        (
            rules({"when": "otherwise", "cover": [{"all": LABELS, "weight": -1}]}),
            "greater than or equal to 1",
        ),
    ],
)
def test_misspelled_coverings_are_error_pointer(covering: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse_covering(covering)
    with pytest.raises(ParameterError, match=message) as raised:
        AdaBoostLC(covering=covering).validated_parameters()
    assert raised.value.pointer.startswith("/learner/covering")


def test_a_covering_round_trips_through_json() -> None:
    covering = parse_covering(SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT)
    dumped = covering.model_dump(mode="json", exclude_unset=True)
    assert dumped == SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT
    assert parse_covering(covering) == covering


def test_measures_of_no_examples_are_undefined() -> None:
    nothing = csr_array(np.zeros((0, 4), dtype=np.int8))
    assert np.isnan(covering_error(nothing, nothing, {"kind": "hamming"}, LABELS))
    assert np.isnan(covering_loss(nothing, np.zeros((0, 4)), {"kind": "zero_one"}, LABELS))


def test_measures_are_means_of_examples_in_their_order() -> None:
    rng = np.random.default_rng(0)
    Y = csr_array((rng.random((5000, 4)) < 0.4).astype(np.int8))
    scores = rng.normal(size=(5000, 4))
    compiled = parse_covering(SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT).compile(LABELS)
    predicted = csr_array((scores > 0).astype(np.int8))
    errors = compiled.errors(Y, scores)
    alone = [compiled.errors(Y[[i]], scores[[i]])[0] for i in range(0, 5000, 97)]
    assert errors[::97].tolist() == alone
    assert covering_error(Y, predicted, SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT, LABELS) == pytest.approx(
        errors.mean()
    )
    loss = covering_loss(Y, scores, SPORT_BY_LABEL_ECONOMY_AS_ONE_UNIT, LABELS)
    assert errors.mean() * np.log(2) <= loss


def _groups(n: int) -> Callable[[], object]:
    covering = {"kind": "groups", "groups": [{"labels": [f"l{i}" for i in range(n)]}]}
    labels = {f"l{i}" for i in range(n)}
    return lambda: parse_covering(covering).check(sorted(labels), labels)


def _conditions(n: int) -> Callable[[], object]:
    """One condition per label, each of which says something about later rules."""
    labels = {f"l{i}" for i in range(n)}
    cover = [{"positives": "all"}, {"negatives": "each"}]
    parts = [sorted(labels)[start::MAX_RULES] for start in range(MAX_RULES - 1)]
    conditions = [{"any": part} for part in parts if part]
    covering = rules(
        *({"when": c, "cover": cover} for c in conditions), {"when": "otherwise", "cover": cover}
    )
    return lambda: parse_covering(covering).check([], labels)


@pytest.mark.parametrize("work", [_groups, _conditions])
def test_checking_a_covering_costs_time_linear_in_its_names(
    work: Callable[[int], Callable[[], object]],
) -> None:
    check_linear(work, 1_000)


def test_the_number_of_rules_is_limited() -> None:
    rule = {"when": {"has": "football"}, "cover": [{"positives": "all"}, {"negatives": "each"}]}
    last = {"when": "otherwise", "cover": rule["cover"]}
    parse_covering(rules(*[rule] * (MAX_RULES - 1), last))
    with pytest.raises(ValidationError, match="1000"):
        parse_covering(rules(*[rule] * MAX_RULES, last))


def test_an_error_about_a_long_condition_is_short() -> None:
    names = [f"label {i}" for i in range(5_000)]
    covering = rules(
        {"when": {"any": names}, "cover": [{"positives": "all"}]},
        {"when": "otherwise", "cover": [{"positives": "all"}, {"negatives": "each"}]},
    )
    with pytest.raises(ParameterError, match="leaves labels uncovered") as error:
        parse_covering(covering).check([], set(names))
    assert len(str(error.value)) < 1_000
