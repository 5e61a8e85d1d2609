"""The folders and keywords that a message gets, by its decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from imap_tools.imap_utf7 import utf7_encode

from app.inbound.routed_message import RoutedDepartment, RoutedMessage

Action: TypeAlias = Literal["move", "copy", "flag"]

REVIEW: Final = "CoveyReview"
FALLBACK: Final = "CoveyFallback"
"""Keywords of messages that need a review, or have no department, if messages are flagged."""

_NOT_IN_KEYWORDS: Final = frozenset('(){%*"\\] ')


@dataclass(frozen=True, slots=True)
class Rules:
    """The configuration of ``covey imap``.

    Attributes:
        action: whether messages are moved or copied to folders, or get keywords.
        folders: folders by label.
        folder: folder of all other labels, with ``{label}`` or ``{destination}``; None: none.
        review_folder: folder of messages that need a review; None: they stay.
        fallback_folder: folder of messages without a department, or that cannot be read; None: they stay.
        keyword: keyword of a label, with ``{label}``.
    """

    action: Action
    folders: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    review_folder: str | None = None
    fallback_folder: str | None = None
    keyword: str = "{label}"

    def named_folders(self) -> list[str]:
        """Return all folders whose names are known before a message arrives."""
        named = [*self.folders.values(), self.review_folder, self.fallback_folder]
        return list(dict.fromkeys(path for path in named if path))

    def folders_of(self, decision: RoutedMessage | None, path_part: Callable[[str], str]) -> list[str]:
        """Return the distinct folders of a message, as paths; none if it stays where it is.

        Args:
            decision: the decision; None if the message cannot be read.
            path_part: makes one level of a path out of any text.
        """
        if self.action == "flag":
            return []
        if decision is None or decision.disposition != "routed":
            is_review = decision is not None and decision.disposition == "review"
            folder = self.review_folder if is_review else self.fallback_folder
            return [folder] if folder else []
        paths = [self._folder_of(department, path_part) for department in decision.departments]
        return list(dict.fromkeys(path for path in paths if path))

    def _folder_of(self, department: RoutedDepartment, path_part: Callable[[str], str]) -> str | None:
        named = self.folders.get(department.label)
        if named is not None or self.folder is None:
            return named
        # In one pass: a label can contain the word {destination}.
        parts = self.folder.split("{label}")
        destination, label = path_part(department.destination), path_part(department.label)
        return label.join(part.replace("{destination}", destination) for part in parts)

    def keywords_of(self, decision: RoutedMessage | None) -> list[str]:
        """Return the keywords of a message; none if it cannot be read."""
        if self.action != "flag" or decision is None:
            return []
        if decision.disposition != "routed":
            return [REVIEW if decision.disposition == "review" else FALLBACK]
        return [
            keyword(self.keyword.replace("{label}", department.label)) for department in decision.departments
        ]


def keyword(text: str) -> str:
    r"""Return a text as a keyword of IMAP, which has ASCII characters only and no spaces.

    >>> keyword("Kunden & Verkäufe")
    'Kunden_&-_Verk&AOQ-ufe'
    """
    encoded = utf7_encode(text).decode("ascii")
    # A keyword that begins with a backslash would be a flag of the system.
    return "".join("_" if char in _NOT_IN_KEYWORDS or not char.isprintable() else char for char in encoded)
