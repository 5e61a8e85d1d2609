"""Stacks that the tests of a fixture share, which run in one process."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from stack import Stack

NAMES = ("killable_stack", "secured_stack", "stack")
"""The fixtures."""

STACKS = pytest.StashKey[dict[str, Stack]]()
"""The stacks that have started, by the name of their fixture."""


def start_needed(stacks: dict[str, Stack], needed: Collection[str]) -> None:
    """Start the stacks again that a test needs, and that have stopped."""
    for name, stack in stacks.items():
        if name in needed and not stack.is_running:
            stack.start()


def stop_others(stacks: dict[str, Stack], needed: Collection[str]) -> None:
    """Stop the stacks that the next test does not need: an idle stack, too, takes processor time."""
    for name, stack in stacks.items():
        if name not in needed and stack.is_running:
            status = stack.stop()
            assert status == 0 or name == "killable_stack", stack.tail()
