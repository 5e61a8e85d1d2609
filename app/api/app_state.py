"""The state of the application."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import State


class AppState(State):
    """State whose attributes are ordinary attributes.

    Those of the base class are entries of a dictionary, which Python looks up only after it has failed to
    find an ordinary attribute. Every request reads several.

    >>> state = AppState()
    >>> state.draining = False
    >>> state.draining
    False
    """

    def __setattr__(self, key: Any, value: Any) -> None:
        object.__setattr__(self, key, value)

    def __delattr__(self, key: Any) -> None:
        object.__delattr__(self, key)
