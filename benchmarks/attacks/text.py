"""Texts that cost more than their size: marks, long words, and n-grams and products of them."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.attacks.harness import (
    MESSAGES,
    PREDICT,
    Result,
    Service,
    Targets,
    at_most,
    attack,
    expect,
)

MARKS = "a" + "\u0301\u0316" * 100_000
ALPHABETS = {
    "marks": "a\u0301\u0316\u0323\u0308",
    "one word": "x",
    "digits": "7",
    "quotes": "> ",
    "CJK": "漢",
    "emoji": "👩\u200d👩\u200d👧\u200d👦",
    "sharp s": "ß",
}
BASE = 250_000
"""Length of the shortest text of a growth measurement, in characters."""
FACTOR = 8
MAX_GROWTH = 24.0
"""Largest ratio of CPU times for texts of ``FACTOR`` times a length. Linear is 8, quadratic is 64."""
NOISE_SECONDS = 0.15
"""CPU time below which a ratio says nothing."""


@attack("a message of alternating combining marks", short=True)
def marks(targets: Targets) -> Iterator[Result]:
    """Route and predict a text whose Unicode normalization was quadratic."""
    service = targets.shared
    message = f"Subject: hello\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{MARKS}".encode()
    with service.watched() as cost:
        response = service.post(MESSAGES, content=message, headers={"Content-Type": "message/rfc822"})
    yield expect("status of the message", response.status_code, 200)
    yield at_most("CPU time of the API for the message", cost.cpu_seconds, 2.0, "s")
    yield at_most("longest health check meanwhile", cost.longest_wait, 2.0, "s")
    with service.watched() as cost:
        response = service.post(PREDICT, json={"instances": [{"text": MARKS}]})
    yield expect("status of the prediction", response.status_code, 200, 413, 422)
    yield at_most("CPU time of the API for the prediction", cost.cpu_seconds, 2.0, "s")


@attack("texts of 1 and 8 times a length, of adversarial alphabets")
def growth(targets: Targets) -> Iterator[Result]:
    """Compare the CPU time of the API for texts of growing length."""
    for name, alphabet in ALPHABETS.items():
        times = [_seconds(targets.shared, alphabet, BASE * n) for n in (1, FACTOR)]
        ratio = times[1] / max(times[0], NOISE_SECONDS / FACTOR)
        yield at_most(f"CPU time at {FACTOR} times the length, {name}", ratio, MAX_GROWTH, "times")


def _seconds(service: Service, alphabet: str, length: int) -> float:
    text = (alphabet * (length // len(alphabet) + 1))[:length]
    seconds = []
    for _ in range(3):
        with service.watched() as cost:
            response = service.post(PREDICT, json={"instances": [{"text": text}]})
        assert response.status_code in (200, 413, 422), response.text[:500]
        seconds.append(cost.cpu_seconds)
    return min(seconds)
