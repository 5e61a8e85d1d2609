"""Optional libraries: which extra of the package installs each of them.

Learning from texts and numbers needs none of them. A module that uses one imports it like this, and calls
:func:`require` where it uses it::

    try:
        import zstandard
    except ModuleNotFoundError:
        zstandard = None
"""

from __future__ import annotations

from typing import Final, Literal

from models.errors import MissingExtraError

EXTRAS: Final[dict[str, Literal["files", "mail"]]] = {
    "charset_normalizer": "mail",
    "py3langid": "mail",
    "pyarrow": "files",
    "selectolax": "mail",
    "webencodings": "mail",
    "zstandard": "files",
}
"""The extra of each optional library, by the name under which it is imported."""


def require(module: object, library: str, purpose: str) -> None:
    """Check that an optional library is installed.

    Args:
        module: the imported library; None if it is not installed.
        library: its name, a key of ``EXTRAS``.
        purpose: what needs it, the beginning of a sentence.

    Raises:
        MissingExtraError: it is not installed; the message names the extra.
    """
    if module is None:
        extra = EXTRAS[library]
        raise MissingExtraError(
            f"{purpose} needs {library}, which is not installed; run: pip install 'covey[{extra}]'"
        )
