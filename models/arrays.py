"""The array types that everything in ``models`` speaks."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]

Matrix: TypeAlias = "csr_array[Any, tuple[int, int]]"
"""Examples by features, compressed sparse rows of float64, indices sorted, no explicit zeros."""

Labels: TypeAlias = "csr_array[Any, tuple[int, int]]"
"""Examples by labels, compressed sparse rows of int8; a stored 1 is a relevant label."""
