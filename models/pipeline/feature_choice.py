"""Chooses features among candidates by how they rank the labels of held-out documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from models import catalog
from models.arrays import Bools, Floats
from models.base import Context, Learner, Problem, Step
from models.catalog import FeaturesConfig
from models.data.digests import document_groups
from models.data.examples import ExampleSource
from models.errors import UnsuitableDataError
from models.features.auto import richer_features
from models.features.documents import read_documents
from models.features.raw_values import RawValues
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix, unknown_matrix
from models.measures.rankings import example_ranking_measures
from models.pipeline.training_set import Features
from models.splits import stratified_folds

MAX_EXAMPLES = 4000
"""Number of training examples that are compared at most, which limits the time."""

_N_PARTS = 3
"""One of so many equal parts of the examples is held out."""


@dataclass(frozen=True)
class FeatureChoice:
    """The chosen features.

    Attributes:
        parameters: their parameters.
        average_precision: mean average precision of each candidate on the held-out examples, by name; empty
            if there were too few examples for a comparison.
    """

    parameters: FeaturesConfig
    average_precision: dict[str, float]


class FeatureChooser:
    """Compares candidates on a sample of the training examples.

    A third of the sample is held out. Features and learner are fitted on the rest, and rank the labels of the
    held-out documents. Of the candidates whose mean average precision is not worse than the best one by more
    than the standard error of the difference, the first is chosen: it is the cheapest.

    Args:
        learner: the learner, which is not changed.
        source: the training examples.
        tree: the label tree, or None.
        seed: seed of the sample and of the held-out part.
        on_step: called after every step of a learner with the number of compared candidates. It can raise
            ``StopTraining``.
    """

    def __init__(
        self,
        learner: Learner,
        source: ExampleSource,
        *,
        tree: LabelTree | None,
        seed: int,
        on_step: Callable[[int], None],
    ) -> None:
        self._learner = learner
        self._on_step = on_step
        self._completed = 0
        self._n_documents = source.n_examples
        sample = _sample(source, seed)
        self._documents = [read_documents(batch.documents) for batch in sample.batches()]
        labels = collect_labels(sample.label_sets(), tree)
        Y = indicator_matrix(sample.label_sets(), labels, tree)
        self._context = Context(
            labels=labels,
            parents=None if tree is None else tree.parent_indices(labels),
            numeric_features=source.kind == "features",
            unknown=unknown_matrix(sample.unknown_sets(), Y, labels, tree),
        )
        self._Y, self._weights = Y, sample.example_weights()
        self._groups = document_groups(sample)
        folds = stratified_folds(Y, _N_PARTS, seed=seed, groups=self._groups)
        self._held_out: Bools = folds == 0

    def choose(self, recipe: FeaturesConfig) -> FeatureChoice:
        """Compare the features that suit the learner with others.

        Raises:
            UnsuitableDataError: the learner cannot learn from this data.
        """
        raw = catalog.create_features(recipe).read(self._documents)
        candidates = richer_features(recipe, raw, self._n_documents)
        first = next(iter(candidates))
        precision: dict[str, Floats] = {}
        for name, parameters in candidates.items():
            features = catalog.create_features(parameters)
            found = self._average_precision(
                features, raw if name == first else features.read(self._documents)
            )
            self._completed += 1
            if found is not None:
                precision[name] = found
        if first not in precision:
            return FeatureChoice(recipe, {})
        means = {name: float(values.mean()) for name, values in precision.items()}
        best = precision[max(means, key=lambda name: means[name])]
        chosen = next(name for name, values in precision.items() if _equally_good(values, best))
        return FeatureChoice(candidates[chosen], means)

    def _average_precision(self, features: Features, raw: RawValues) -> Floats | None:
        """Return the average precision of each held-out document that has labels of the others.

        Returns:
            None if there are fewer than two such documents, or the features cannot be fitted on the others.
        """
        training = ~self._held_out
        Y, context = self._Y[training], self._context.where(training)
        trained = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
        relevant = self._Y[self._held_out][:, trained]
        labelled = np.diff(relevant.indptr) > 0
        if labelled.sum() < 2:
            return None
        try:
            X = features.fit_raw(raw.where(training), Y, context.unknown)
        except UnsuitableDataError:
            return None
        context = replace(context, features=features.names_, candidates=features.candidates_)
        learner: Learner = clone(self._learner)
        weights = None if self._weights is None else self._weights[training]
        groups = self._groups[training]
        learner.fit_problem(Problem(X, Y, context, weights, groups), monitor=self._report)
        scores = np.asarray(learner.decision_function(features.values(raw.where(self._held_out))))
        return example_ranking_measures(relevant, scores[:, trained])["average_precision"][labelled]

    def _report(self, step: Step, /) -> None:  # noqa: ARG002 - every learner has its own steps
        self._on_step(self._completed)


def _equally_good(candidate: Floats, best: Floats) -> bool:
    """Whether the mean of paired values is not below that of the best by more than the standard error."""
    difference = best - candidate
    return bool(difference.mean() <= difference.std() / np.sqrt(len(difference)))


def _sample(source: ExampleSource, seed: int) -> ExampleSource:
    n = source.n_examples
    if n <= MAX_EXAMPLES:
        return source
    keep = np.zeros(n, dtype=np.bool_)
    keep[np.random.default_rng(seed).permutation(n)[:MAX_EXAMPLES]] = True
    return source.where(keep)
