"""Rejects queries with unknown or repeated parameters, which would otherwise be ignored silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.api.json_body import check_text, escape
from app.api.unknown_fields import describe_unknown
from app.errors import Invalid

_MAX_ERRORS = 50


class QueryParameters:
    """Checks the queries of one operation.

    Args:
        names: names of its query parameters. Each can be given once.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = sorted(names)

    def check(self, given: Sequence[tuple[str, str]]) -> None:
        """Check the names and values of a query.

        Raises:
            Invalid: a parameter contains a control character, is unknown, or is given more than once.
        """
        if not given:
            return
        for name, value in given:
            check_text(name + value, "query", name)
        errors = []
        for name, count in Counter(name for name, _ in given).items():
            if not self._names:
                message = "is unknown; this operation has no query parameters"
            elif name not in self._names:
                message = describe_unknown(name, self._names, "parameter")
            elif count > 1:
                message = f"is given {count} times; give it once"
            else:
                continue
            errors.append((f"/query/{escape(name)}", message))
        if errors:
            detail = "; ".join(f"{place}: {message}" for place, message in errors[:3])
            raise Invalid(detail, errors=errors[:_MAX_ERRORS])
