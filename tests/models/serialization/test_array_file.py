"""Files of arrays: reading returns the written arrays, and a full disk raises OSError."""

from __future__ import annotations

import errno
import resource
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from models.serialization.array_file import write_arrays


def test_reading_returns_the_written_arrays(tmp_path: Path) -> None:
    arrays = {
        "turned": np.arange(6.0).reshape(2, 3).T,
        "number": np.array(7),
        "nothing": np.zeros((0, 2), dtype=np.int32),
        "every other": np.arange(10)[::2] > 3,
    }
    write_arrays(tmp_path / "file", arrays)
    again = safetensors.numpy.load_file(tmp_path / "file")
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (again[name].dtype, again[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(again[name], array)


def test_a_full_disk_raises_os_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OSError, match="os error") as caught:
            write_arrays(tmp_path / "file", {"many": np.zeros(1 << 20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
