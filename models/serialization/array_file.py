"""Named arrays in a safetensors file: numbers and names, and no code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from models.arrays import AnyArray

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


def write_arrays(
    path: Path, arrays: Mapping[str, AnyArray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a file.

    Args:
        path: where to; replaced if it exists.
        arrays: by name.
        metadata: texts to keep with them, by name.

    Raises:
        OSError: the system does not take it; a full disk is told as one.
    """
    ordered = {name: _in_order(array) for name, array in arrays.items()}
    try:
        safetensors.numpy.save_file(ordered, path, metadata=dict(metadata) if metadata else None)
    except SafetensorError as error:
        # The library tells of the system's errors in words only.
        if (told := _SYSTEM_ERROR.search(str(error))) is not None:
            raise OSError(int(told[1]), str(error)) from error
        raise


def _in_order(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # reshape: ascontiguousarray gives a number without dimensions one.
    return np.ascontiguousarray(array).reshape(array.shape)
