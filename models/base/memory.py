"""The limit of the weights of a model."""

from __future__ import annotations

from models.errors import UnsuitableDataError

GIB = 2**30

WEIGHTS_LIMIT = 4 * GIB
"""Maximum size of the weights of a model in bytes."""


def check_weights_size(n_weights: int, itemsize: int, what: str) -> None:
    """Check the size of weights before they are allocated.

    Args:
        n_weights: number of weights.
        itemsize: bytes per weight.
        what: what the weights are for, in the plural, for the error message.

    Raises:
        UnsuitableDataError: the weights need more than ``WEIGHTS_LIMIT`` bytes.
    """
    size = n_weights * itemsize
    if size > WEIGHTS_LIMIT:
        raise UnsuitableDataError(
            f"{what} need {size / GIB:.1f} GiB of weights ({n_weights:,} of {itemsize} bytes each), but the "
            f"limit is {WEIGHTS_LIMIT / GIB:.0f} GiB; select fewer features or merge rare labels"
        )
