"""Texts that cost more than their size: marks, long words, and n-grams and products of them."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import Any

from benchmarks.attack.harness import (
    MESSAGES,
    MIB,
    PREDICT,
    Result,
    Service,
    Targets,
    at_most,
    attack,
    expect,
    within,
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
MAX_GROWTH_MIB = 512.0
"""Largest growth of the API's memory by one request."""
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
    yield within("longest health check meanwhile", cost.longest_wait, 2.0)
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


def _letters(n: int) -> str:
    """Return n letters without a period, so that their n-grams differ."""
    return "".join(random.Random(0).choices(string.ascii_lowercase, k=n))  # noqa: S311 - no secret


def _text_model(service: Service, model: str, analyzer: dict[str, Any]) -> str:
    """Train a model with an analyzer, and return the path of its predictions."""
    service.train(service.dataset, model, features={"kind": "text", "analyzer": analyzer})
    return f"/v1/models/{model}/predict"


def _costs(service: Service, what: str, path: str, body: dict[str, Any]) -> Iterator[Result]:
    with service.watched() as cost:
        response = service.post(path, json=body)
    yield expect(f"status of {what}", response.status_code, 200, 413, 422)
    yield at_most(f"growth of the API by {what}", cost.grown_mib, MAX_GROWTH_MIB, "MiB")
    yield at_most(f"CPU time of the API for {what}", cost.cpu_seconds, 10.0, "s")
    yield within(f"longest health check during {what}", cost.longest_wait, 2.0)


@attack("n-grams of a text of megabytes")
def ngrams(targets: Targets) -> Iterator[Result]:
    """Predict with n-grams of characters and of words, whose number is a multiple of the text's length."""
    service = targets.shared
    path = _text_model(service, "characters", {"unit": "character", "ngrams": [1, 8]})
    body = {"instances": [{"text": _letters(4 * MIB)}]}
    yield from _costs(service, "character n-grams of a word of 4 MiB", path, body)
    path = _text_model(service, "words", {"ngrams": [1, 5]})
    letters = _letters(6 * MIB)
    text = " ".join(letters[start : start + 5] for start in range(0, len(letters), 6))
    yield from _costs(service, "word n-grams of a text of 6 MiB", path, {"instances": [{"text": text}]})


@attack("a word of 300,000 letters for a stemmer")
def stemmer(targets: Targets) -> Iterator[Result]:
    """Predict a word whose stemming was slow and held a lock that all callers of the model need."""
    service = targets.shared
    path = _text_model(service, "german", {"stemmer": "german"})
    yield from _costs(service, "a long word", path, {"instances": [{"text": "ß" * 300_000}]})


@attack("products of 8,000 features")
def products(targets: Targets) -> Iterator[Result]:
    """Predict with products of features, whose number grows with the square of the number of features."""
    service = targets.shared
    examples = [
        {"features": {f"f{(i * 40 + k) % 8000}": 1.0 + k for k in range(40)}, "labels": [f"l{i % 2}"]}
        for i in range(400)
    ]
    dataset = service.stack.dataset(examples)
    service.train(dataset["id"], "products", features={"kind": "numeric", "interactions": 2})
    body = {"instances": [{"features": {f"f{n}": 1.0 for n in range(8000)}}]}
    yield from _costs(service, "8,000 features", "/v1/models/products/predict", body)


@attack("1,000 instances for 2,000 labels")
def rankings(targets: Targets) -> Iterator[Result]:
    """Request the rankings of all labels for many instances."""
    service = targets.shared
    examples = [{"text": f"w{n} w{n + 1} common", "labels": [f"label {n}"]} for n in range(2000)]
    dataset = service.stack.dataset(examples)
    service.train(dataset["id"], "many-labels", learner={"algorithm": "naive_bayes"})
    body: dict[str, Any] = {"instances": [{"text": "w1"}] * 1000}
    yield from _costs(service, "all rankings", "/v1/models/many-labels/predict", body)
    body["top"] = 5
    response = service.post("/v1/models/many-labels/predict", json=body)
    yield expect("status of short rankings", response.status_code, 200)
