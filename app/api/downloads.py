"""Downloads of files of the storage: with a digest, a name, and ranges of bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from fastapi import Header
from fastapi.responses import FileResponse

from app.api.errors import RangeNotSatisfiable

RangeHeader: TypeAlias = Annotated[
    str | None, Header(alias="range", description="One range of bytes, such as `bytes=1000-`.")
]


def download_responses(what: str, *media_types: str) -> dict[int | str, dict[str, Any]]:
    """Document the successful responses of a download.

    Args:
        what: what the file is, such as ``artifact``.
        media_types: media types of the file.
    """
    content = {media: {"schema": {"type": "string", "format": "binary"}} for media in media_types}
    return {
        200: {"description": f"The bytes of the {what}.", "headers": {"ETag": {}}, "content": content},
        206: {
            "description": "The requested range of the bytes.",
            "headers": {"ETag": {}},
            "content": content,
        },
    }


def download(
    path: Path, *, sha256: str, size: int, media_type: str, filename: str, range_: str | None
) -> FileResponse:
    """Return a response with a file, or with a range of it.

    Args:
        path: local path of the file.
        sha256: digest of the file; the ``ETag`` of the response.
        size: size of the file in bytes.
        media_type: media type of the file.
        filename: name under which clients save the file.
        range_: the header ``Range`` of the request; None if it has none.

    Raises:
        RangeNotSatisfiable: the file does not have the range.
    """
    if range_ is not None:
        _check_range(range_, size)
    return FileResponse(path, media_type=media_type, filename=filename, headers={"ETag": f'"{sha256}"'})


def _check_range(value: str, size: int) -> None:
    match = re.fullmatch(r"bytes=(\d{1,18})-(\d{0,18})", value.strip())
    if match is None or int(match[1]) >= size or (match[2] and int(match[2]) < int(match[1])):
        raise RangeNotSatisfiable(
            f"Range: {value[:100]} is not a range of the {size} bytes; send one such as bytes=1000-",
            headers={"Content-Range": f"bytes */{size}"},
        )
