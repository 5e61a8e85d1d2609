"""Completes the manifests that older versions of the program wrote, so that their models behave as before."""

from __future__ import annotations

from typing import Any


def complete_manifest(values: Any) -> Any:
    """Return the values of a manifest with the fields that the version of its writer did not have.

    The value of such a field is the one that describes what that version did, which can differ from the
    default for new models.

    >>> features = {"kind": "text", "analyzer": {"unit": "word"}}
    >>> complete_manifest({"features": features})["features"]["analyzer"]
    {'unsegmented': 'none', 'fold_turkic_i': False, 'unit': 'word'}
    """
    match values:
        case {"features": {"kind": "text", "analyzer": {**analyzer}, **others}}:
            completed = {"unsegmented": "none", "fold_turkic_i": False, **analyzer}
            return {**values, "features": {"kind": "text", "analyzer": completed, **others}}
    return values
