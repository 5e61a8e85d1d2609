"""What the roles of users permit."""

from __future__ import annotations

from collections.abc import Mapping

from app.api.guards import Caller, Scope
from app.db import tables
from app.settings import Role

SCOPES_OF: Mapping[str, tuple[Scope, ...]] = {
    "reader": ("read",),
    "reviewer": ("read", "review"),
    "editor": ("read", "predict", "review", "train"),
    "admin": ("admin",),
}
"""The scopes of each role, from the role that permits least to the role that permits most."""


def caller_of_user(user: tables.User) -> Caller:
    """Return the caller of a user's requests."""
    return Caller(user.id, user.name, SCOPES_OF[user.role])


def highest(roles: set[Role]) -> Role | None:
    """Return the role that permits most; None if there is no role.

    >>> highest({"reader", "editor"})
    'editor'
    """
    return max(roles, key=list(SCOPES_OF).index, default=None)
