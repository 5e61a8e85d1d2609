"""Completes the manifests that older versions of the program wrote, so that their models behave as before."""

from __future__ import annotations

from typing import Any


def complete_manifest(values: Any) -> Any:
    """Return the values of a manifest with the fields that the version of its writer did not have.

    The value of such a field is the one that describes what that version did, which can differ from the
    default for new models.

    >>> complete_manifest({"features": {"kind": "text", "analyzer": {"unit": "word"}}})
    {'features': {'kind': 'text', 'analyzer': {'unsegmented': 'none', 'unit': 'word'}}}
    """
    match values:
        case {"features": {"kind": "text", "analyzer": {**analyzer}, **others}}:
            features = {"kind": "text", "analyzer": {"unsegmented": "none", **analyzer}, **others}
            return {**values, "features": features}
    return values
