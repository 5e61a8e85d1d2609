"""What a promise is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from benchmarks.promises.corpora import Parts
from benchmarks.promises.library import Trained
from models.data.examples import Examples


@dataclass(frozen=True)
class Cell:
    """A corpus with a number of training examples and a seed.

    Attributes:
        parts: the corpus, divided.
        size: number of training examples.
        seed: the seed.
        learner: name of the learner.
        measurements: whether documents are measurements rather than words.
    """

    parts: Parts
    size: int
    seed: int
    learner: str
    measurements: bool

    @cached_property
    def trained(self) -> Trained:
        """The pipeline with the default decision."""
        return self.train(self.parts.training(0, self.size))

    def train(self, training: Examples) -> Trained:
        """Train on other examples."""
        return Trained.of(training, self.parts.test, self.learner, seed=self.seed)
