"""Who a person is, as the OpenID provider states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Identity:
    """A person at an OpenID provider.

    Attributes:
        issuer: the provider.
        subject: id of the person at the provider.
        name: name of the person.
        email: e-mail address; None if the provider does not state it.
        email_verified: False if the provider says that it has not verified the address.
        values: the values of the claim that decides about roles.
    """

    issuer: str
    subject: str
    name: str
    email: str | None
    email_verified: bool
    values: frozenset[str]


def identity_of(claims: Mapping[str, Any], claim: str) -> Identity:
    """Return the person that the verified claims of an ID token describe.

    Args:
        claims: the claims; ``iss`` and ``sub`` are texts.
        claim: name of the claim that decides about roles: a text, or a list of texts.

    >>> claims = {"iss": "https://id.example", "sub": "7", "email": "ann@example.org", "groups": ["a", "b"]}
    >>> identity = identity_of(claims, "groups")
    >>> identity.name, sorted(identity.values), identity.email_verified
    ('ann@example.org', ['a', 'b'], True)
    """
    texts = {name: _clean(value) for name, value in claims.items() if isinstance(value, str)}
    values = claims.get(claim)
    return Identity(
        issuer=claims["iss"],
        subject=claims["sub"],
        name=texts.get("name") or texts.get("preferred_username") or texts.get("email") or claims["sub"],
        email=texts.get("email") or None,
        email_verified=claims.get("email_verified") not in (False, "false"),
        values=frozenset(str(value) for value in (values if isinstance(values, list) else [values])),
    )


def _clean(text: str) -> str:
    """Return a text without what a database cannot store: the character 0, and halves of characters."""
    return text.encode(errors="replace").decode().replace("\0", "").strip()
