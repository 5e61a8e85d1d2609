"""Downloads a file of the service, and continues after a broken connection."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx

from covey_client._retry import STREAM
from covey_client._runtime import AsyncRuntime
from covey_client.errors import ConnectionFailed, UnexpectedResponse
from covey_client.progress import Progress, Report


class Download:
    """Writes a file of the service to a path.

    Until it is complete, the file has another name, with ``.part`` at its end.

    Args:
        http: sends requests, with retries.
        runtime: writes the file.
        url: path in the API.
        target: path of the file.
        report: receives the number of bytes that were written.
    """

    def __init__(
        self, http: httpx.AsyncClient, runtime: AsyncRuntime, url: str, target: Path, report: Report
    ) -> None:
        self._http = http
        self._runtime = runtime
        self._url = url
        self._target = target
        self._report = report
        self._part = target.with_name(target.name + ".part")
        self._n_bytes = 0
        self._etag = ""

    async def run(self) -> None:
        """Download the file.

        Raises:
            CoveyError: there is none, or the connection broke twice without a byte in between.
        """
        try:
            while True:
                before = self._n_bytes
                try:
                    await self._receive()
                except (httpx.HTTPError, httpx.StreamError) as error:
                    if self._n_bytes == before:
                        raise ConnectionFailed(f"{self._url}: {error!r}") from error
                else:
                    break
            await self._runtime.call(partial(self._part.replace, self._target))
        except BaseException:
            self._part.unlink(missing_ok=True)
            raise

    async def _receive(self) -> None:
        headers = {"Accept-Encoding": "identity"}
        if self._n_bytes:
            headers["Range"] = f"bytes={self._n_bytes}-"
        request = self._http.build_request("GET", self._url, headers=headers)
        request.extensions = {**request.extensions, STREAM: True}
        response = await self._http.send(request, stream=True)
        try:
            self._check(response)
            mode = "ab" if self._n_bytes else "wb"
            with self._part.open(mode) as file:
                async for chunk in response.aiter_bytes():
                    await self._runtime.call(partial(file.write, chunk))
                    self._n_bytes += len(chunk)
                    self._report(Progress("downloading", self._n_bytes, self._total, "bytes"))
        finally:
            await response.aclose()

    def _check(self, response: httpx.Response) -> None:
        expected = httpx.codes.PARTIAL_CONTENT if self._n_bytes else httpx.codes.OK
        etag = response.headers.get("ETag", "")
        if response.status_code != expected or (self._n_bytes and etag != self._etag):
            raise UnexpectedResponse(f"{response.url} returned {response.status_code} {etag}, not the file")
        self._etag = etag
        length = response.headers.get("Content-Length", "")
        self._total = self._n_bytes + int(length) if length.isdecimal() else None
