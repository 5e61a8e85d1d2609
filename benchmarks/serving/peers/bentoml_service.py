"""BentoML around a scorer: a text in, the ranking out. ``SCORER_FILE`` is the file of the weights."""

from __future__ import annotations

import os
from pathlib import Path

import bentoml

from benchmarks.serving.peers.scorer import Scorer


@bentoml.service(workers=1, logging={"access": {"enabled": False}}, metrics={"enabled": False})
class Ranker:
    """The plain scorer."""

    def __init__(self) -> None:
        self._scorer = Scorer(Path(os.environ["SCORER_FILE"]))

    @bentoml.api  # type: ignore[untyped-decorator]
    async def rank(self, text: str) -> dict[str, list[str] | list[float]]:
        """Rank the labels of one text."""
        labels, scores = self._scorer.rank(text)
        return {"labels": labels, "scores": scores}
