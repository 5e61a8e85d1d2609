"""Renames, removes and merges labels during ingestion, as the user requests.

The name of merged spellings is known only at the end, because it is the most frequent one. Until then, the
first spelling stands for all of them. A stored data set lists both names, and replaces one by the other when
it is read. An example is therefore written once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from models.data.ingestion.label_names import spelling_key
from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name, join_first, quoted
from models.errors import BadDataError, ParameterError


@dataclass(frozen=True)
class LabelChanges:
    """Changes of the labels of a file.

    Attributes:
        rename: the new name of each label to rename. A name that is mapped to itself is the name of the
            labels that are merged with it.
        remove: labels to remove from the examples.
        merge_similar: whether labels that differ only in spelling become one label. Its name is the one in
            the label tree or in ``rename``, otherwise the most frequent spelling; ties are in label order.

    Raises:
        ParameterError: a label has two changes, or a new name is no valid label; has the JSON pointer.
    """

    rename: Mapping[str, str] = field(default_factory=dict)
    remove: AbstractSet[str] = frozenset()
    merge_similar: bool = False

    def __post_init__(self) -> None:
        for old, new in self.rename.items():
            if self.rename.get(new, new) != new:
                raise ParameterError(
                    f"{quoted(old)} is renamed to {quoted(new)}, which is renamed, too; state only the last "
                    "name for each label",
                    "/rename_labels",
                )
            if old in self.remove or new in self.remove:
                raise ParameterError(
                    f"{quoted(old if old in self.remove else new)} is in remove_labels and in rename_labels; "
                    "choose one",
                    "/remove_labels",
                )
            try:
                check_name(new, "a label", "", IngestLimits.name_length)
            except RecordError as error:
                raise ParameterError(f"{error.reason}: {quoted(new)}", "/rename_labels") from error

    def check_tree(self, labels: Iterable[str]) -> None:
        """Check that the label tree has no label that is renamed or removed.

        Raises:
            ParameterError: it has one.
        """
        for label in labels:
            if label in self.remove or self.rename.get(label, label) != label:
                kind = "remove" if label in self.remove else "rename"
                raise ParameterError(
                    f"{quoted(label)} is a label of the label tree; change the tree, or omit the label in "
                    f"{kind}_labels",
                    f"/{kind}_labels",
                )


class LabelChanger:
    """Applies changes to the labels of one example after another.

    Args:
        changes: the changes.

    Attributes:
        counts: number of examples of each label as it is written in the file.

    >>> changer = LabelChanger(LabelChanges(merge_similar=True))
    >>> [changer.apply([label]) for label in ("help desk", "Help Desk", "Help Desk")]
    [['help desk'], ['help desk'], ['help desk']]
    >>> changer.final_names()
    {'help desk': 'Help Desk'}
    """

    def __init__(self, changes: LabelChanges) -> None:
        self._changes = changes
        self._names: dict[str, str | None] = dict.fromkeys(changes.remove)
        self._fixed: set[str] = set()
        self._by_key: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._fix(sorted(set(changes.rename.values())))

    def use_tree(self, labels: Sequence[str]) -> None:
        """Keep the names of the label tree. Call this before the first example.

        Args:
            labels: the labels of the tree, in label order.

        Raises:
            BadDataError: a label of the tree is renamed or removed.
        """
        try:
            self._changes.check_tree(labels)
        except ParameterError as error:
            raise BadDataError(str(error)) from error
        self._fix(labels)

    def _fix(self, names: Iterable[str]) -> None:
        for name in names:
            self._fixed.add(name)
            self._names[name] = name
            self._by_key.setdefault(spelling_key(name), name)

    def apply(self, labels: Iterable[str], *, count: bool = True) -> list[str]:
        """Return the labels after the changes, in which the first spelling stands for merged labels.

        Args:
            labels: the labels of an example, as they are written in the file.
            count: whether the labels apply to the example.
        """
        changed: dict[str, None] = {}  # an ordered set
        for label in dict.fromkeys(labels):
            self.counts[label] += count
            name = self._names[label] if label in self._names else self._name_of(label)
            if name is not None:
                changed[name] = None
        return list(changed)

    def _name_of(self, label: str) -> str:
        name = self._changes.rename.get(label, label)
        if self._changes.merge_similar and name not in self._fixed:
            name = self._by_key.setdefault(spelling_key(name), name)
        self._names[label] = name
        return name

    def final_names(self) -> dict[str, str]:
        """Return the final name of each label for which another spelling stood until now."""
        return {
            name: final
            for name, spellings in self._groups().items()
            if (final := self._final_name(name, spellings)) != name
        }

    def _groups(self) -> dict[str, list[str]]:
        """Return the labels in the file by the name that stands for them."""
        groups: dict[str, list[str]] = defaultdict(list)
        for label in sorted(self.counts):
            name = self._names[label]
            if name is not None:
                groups[name].append(label)
        return groups

    def _final_name(self, name: str, spellings: Sequence[str]) -> str:
        return name if name in self._fixed else max(spellings, key=self.counts.__getitem__)

    def merged(self) -> dict[str, list[str]]:
        """Return the labels in the file that have another name now, by their final name."""
        others = {
            (final := self._final_name(name, spellings)): [label for label in spellings if label != final]
            for name, spellings in self._groups().items()
        }
        return {final: labels for final, labels in sorted(others.items()) if labels}

    def warnings(self) -> Iterator[str]:
        """Yield what was changed, and which changes had no effect."""
        merged = [
            f"{join_first(labels, separator=' and ', form=self._with_count)} as {quoted(name)}"
            for name, labels in self.merged().items()
        ]
        if merged:
            changes = join_first(merged, separator="; ", form=str)
            yield f"labels merged or renamed, with their numbers of examples: {changes}"
        removed = sorted(self._changes.remove & self.counts.keys())
        if removed:
            names = join_first(removed, form=self._with_count)
            yield f"labels removed, with their numbers of examples: {names}"
        renamed = {old for old, new in self._changes.rename.items() if old != new}
        absent = sorted((renamed | self._changes.remove) - self.counts.keys())
        if absent:
            yield (
                f"labels in rename_labels or remove_labels that do not occur: {join_first(absent)}; "
                "write them exactly as in the file"
            )

    def _with_count(self, label: str) -> str:
        return f"{quoted(label)} ({self.counts[label]:,})"
