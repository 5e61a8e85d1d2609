"""What learned weights may cost in memory."""

from __future__ import annotations

from models.errors import UnsuitableDataError

GIB = 2**30

WEIGHTS_LIMIT = 4 * GIB
"""Bytes of weights above which a training is refused."""


def check_weights_size(n_weights: int, itemsize: int, what: str) -> None:
    """Refuse weights that will not fit, before they are allocated.

    Args:
        n_weights: how many.
        itemsize: bytes of one.
        what: what needs them, for the message.

    Raises:
        UnsuitableDataError: they take more than ``WEIGHTS_LIMIT``.
    """
    size = n_weights * itemsize
    if size > WEIGHTS_LIMIT:
        raise UnsuitableDataError(
            f"{what} need {size / GIB:.1f} GiB of weights ({n_weights:,} of {itemsize} bytes each), and the "
            f"limit is {WEIGHTS_LIMIT / GIB:.0f} GiB; select fewer features or merge rare labels"
        )
