"""Writes named arrays to a safetensors file, which contains only numbers and names, no code."""

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
        path: the file; replaced if it exists.
        arrays: arrays by name.
        metadata: strings to store with the arrays, by name.

    Raises:
        OSError: the file cannot be written, for example because the disk is full.
    """
    contiguous = {name: _contiguous(array) for name, array in arrays.items()}
    try:
        safetensors.numpy.save_file(contiguous, path, metadata=dict(metadata) if metadata else None)
    except SafetensorError as error:
        # The library reports an error of the operating system only as text.
        if (match := _SYSTEM_ERROR.search(str(error))) is not None:
            raise OSError(int(match[1]), str(error)) from error
        raise


def _contiguous(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # ascontiguousarray turns an array without dimensions into one with one dimension; reshape undoes this.
    return np.ascontiguousarray(array).reshape(array.shape)
