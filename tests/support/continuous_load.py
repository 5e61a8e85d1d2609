"""Clients that send requests to a service continuously."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
from waiting import LIMIT_SECONDS

PAUSE_SECONDS = 0.005


class Load:
    """Clients that predict continuously with the model ``served``, each on one persistent connection.

    Args:
        url: URL of the service.
        clients: number of clients.
        check: returns what is wrong with a response; None if nothing is.
    """

    def __init__(
        self, url: str, clients: int, check: Callable[[dict[str, Any]], str | None] = lambda _response: None
    ) -> None:
        self.responses = 0
        self.failures: list[str] = []
        self._url = url
        self._check = check
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send_requests) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _send_requests(self) -> None:
        body = {"instances": [{"text": "my invoice is wrong"}]}
        with httpx.Client(base_url=self._url, timeout=LIMIT_SECONDS, trust_env=False) as client:
            while not self._stopping.is_set():
                try:
                    response = client.post("/v1/models/served/predict", json=body)
                    if response.status_code != 200:
                        self.failures.append(f"{response.status_code} {response.text[:300]}")
                    elif (failure := self._check(response.json())) is not None:
                        self.failures.append(failure)
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))
                self.responses += 1
                time.sleep(PAUSE_SECONDS)

    def has_responses(self, n: int) -> bool | None:
        """Return True if there are at least n responses, otherwise None."""
        return self.responses >= n or None

    def stop(self) -> None:
        """Stop the clients after their current requests."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
