"""Dense products in blocks of one size, so that an example has the same scores in every batch.

BLAS rounds the same product differently for different numbers of rows. A block therefore always has the same
number of rows; the last one is filled up with zeros.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from models.arrays import Floats

ROWS = 16
"""Rows of a block. More rows make large batches faster, and fewer rows make a single example faster."""


def one_blas_thread() -> AbstractContextManager[object]:
    """Let BLAS use one thread in a block of code, because results must not depend on threads."""
    limiter: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limiter


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes a millisecond


def row_blocks(rows: Floats) -> Floats:
    """Return (b, ROWS, m) blocks of (n, m) rows; the last one ends with rows of zeros."""
    return np.pad(rows, ((0, -len(rows) % ROWS), (0, 0))).reshape(-1, ROWS, rows.shape[1])


def blockwise_product(rows: Floats, weights: Floats) -> Floats:
    """Return the (n, p) product of (n, m) and (m, p) dense matrices.

    >>> blockwise_product(np.ones((2, 3)), np.ones((3, 1))).tolist()
    [[3.0], [3.0]]
    """
    products: Floats = (row_blocks(rows) @ weights).reshape(-1, weights.shape[1])
    return products[: len(rows)]
