"""What ``review_below`` of a router promises: of the messages that it lets pass, so many are right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from covey import SVM, Pipeline, TextFeatures
from models.data.examples import Examples

N_LABELS, N_WORDS = 5, 120


def messages(n: int, rng: np.random.Generator) -> Examples:
    """Return messages with one or two labels, whose words say more or less about the labels.

    From a fifth to four fifths of the words belong to the labels of the message, the others to any label.
    """
    texts, label_sets = [], []
    for _ in range(n):
        labels = rng.choice(N_LABELS, rng.choice([1, 1, 2]), replace=False)
        clarity = rng.choice([0.2, 0.4, 0.8])
        words = rng.integers(0, N_WORDS, 14)
        own = rng.random(14) < clarity
        words[own] = words[own] // N_LABELS * N_LABELS + rng.choice(labels, int(own.sum()))
        texts.append(" ".join(f"w{word}" for word in words))
        label_sets.append(tuple(sorted(f"label{label}" for label in labels)))
    return Examples("text", texts, label_sets)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_label_sets_above_a_probability_are_right_at_least_so_often(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pipeline = Pipeline(TextFeatures(), SVM(), seed=seed).fit(messages(600, rng))
    new = messages(1500, rng)
    ranking = pipeline.rank(new.documents)
    assert ranking.set_probabilities is not None
    predicted = [tuple(pipeline.labels_[j] for j in numbers) for numbers in ranking.label_sets]
    right = np.array([found == true for found, true in zip(predicted, new.labels, strict=True)])
    assert 0.3 < right.mean() < 0.8, "a review must make a difference"
    for review_below in (0.5, 0.7, 0.8, 0.9):
        passed = ranking.set_probabilities >= review_below
        assert passed.sum() >= 50, review_below
        n_right = int(right[passed].sum())
        p_value = stats.binomtest(n_right, int(passed.sum()), review_below, "less").pvalue
        assert p_value > 0.001, (review_below, n_right, int(passed.sum()))
