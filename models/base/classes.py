"""The classes of single-label data as arrays that can be saved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.arrays import AnyArray
from models.errors import ParameterError
from models.serialization.state import State, read_array, require
from models.serialization.strings import pack_strings, unpack_strings


def pack_classes(classes: AnyArray) -> State:
    """Return classes as arrays that a file can contain.

    Raises:
        ParameterError: they are neither texts, numbers nor booleans.
    """
    values = classes.tolist()
    if all(isinstance(value, str) for value in values):
        names, offsets = pack_strings(values)
        return {"class_names": names, "class_offsets": offsets}
    if classes.dtype.kind == "b":
        return {"class_flags": classes}
    if classes.dtype.kind in "iu":
        return {"class_numbers": classes.astype(np.int64)}
    if classes.dtype.kind == "f":
        return {"class_values": classes.astype(np.float64)}
    raise ParameterError(
        f"classes of the type {type(values[0]).__name__} cannot be saved; use texts, numbers or booleans"
    )


def unpack_classes(state: Mapping[str, AnyArray]) -> AnyArray | None:
    """Return the classes of a state; None if there are none.

    Raises:
        ArtifactError: they are invalid.

    >>> unpack_classes(pack_classes(np.array(["ham", "spam"]))).tolist()
    ['ham', 'spam']
    """
    if "class_names" in state:
        names = unpack_strings(
            read_array(state, "class_names", "uint8", (None,)),
            read_array(state, "class_offsets", "int64", (None,)),
        )
        classes: AnyArray = np.array(names)
    elif "class_flags" in state:
        classes = read_array(state, "class_flags", "bool", (None,))
    elif "class_numbers" in state:
        classes = read_array(state, "class_numbers", "int64", (None,))
    elif "class_values" in state:
        classes = read_array(state, "class_values", "float64", (None,))
    else:
        return None
    require(len(classes) >= 2, "there are fewer than two classes")
    require(len(np.unique(classes)) == len(classes), "a class is repeated")
    return classes
