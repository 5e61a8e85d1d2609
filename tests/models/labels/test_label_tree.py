"""The label tree: closures, cycles, its depth, and how its costs grow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth import check_linear

from models.errors import ParameterError
from models.labels import LabelTree


def chain(n: int) -> dict[str, str]:
    return {f"l{i:07}": f"l{i + 1:07}" for i in range(n)}


def test_depth_counts_levels() -> None:
    assert LabelTree({}).depth == 0
    assert LabelTree({"b": "a", "c": "a", "d": "c"}).depth == 3
    assert LabelTree(chain(200)).depth == 201


def test_a_tree_with_too_many_levels_is_rejected() -> None:
    LabelTree(chain(99)).check_depth(100)
    with pytest.raises(ParameterError, match="101 levels; the limit is 100") as error:
        LabelTree(chain(100)).check_depth(100)
    assert error.value.pointer == "/label_tree"


def test_closure_contains_all_ancestors() -> None:
    tree = LabelTree({"b": "a", "c": "b", "x": "y"})
    assert tree.closure(["c", "other"]) == ["a", "b", "c", "other"]
    assert tree.closure(["c", "b", "c"]) == ["a", "b", "c"]
    assert tree.ancestors("c") == ("b", "a")
    assert tree.ancestors("a") == tree.ancestors("other") == ()


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "a"}, "a -> a; "),
        ({"c": "a", "a": "b", "b": "a"}, "a -> b -> a; "),
        ({**chain(49), "l0000049": "l0000000"}, "-> l0000009 and 40 more; "),
    ],
)
def test_a_cycle_is_rejected_with_its_labels(parents: dict[str, str], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        LabelTree(parents)
    assert message in str(error.value)


def _deep(n: int) -> Callable[[], object]:
    parents = chain(n)
    return lambda: LabelTree(parents)


def _deep_from_the_root(n: int) -> Callable[[], object]:
    parents = {child: parent for parent, child in chain(n).items()}
    return lambda: LabelTree(parents)


def _long_cycle(n: int) -> Callable[[], object]:
    parents = {**chain(n), f"l{n:07}": "l0000000"}

    def build() -> None:
        with pytest.raises(ParameterError):
            LabelTree(parents)

    return build


def _closure_of_all(n: int) -> Callable[[], object]:
    tree = LabelTree(chain(n))
    return lambda: tree.closure(tree.labels)


@pytest.mark.parametrize("work", [_deep, _deep_from_the_root, _long_cycle, _closure_of_all])
def test_costs_are_linear_in_the_number_of_labels(work: Callable[[int], Callable[[], object]]) -> None:
    check_linear(work, 4_000)
