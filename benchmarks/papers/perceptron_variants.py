"""MLPP, section VII: margin and kernel perceptrons, and random ties and initial weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.corpora import EXAMPLES, MEASUREMENTS, Json, split
from benchmarks.papers import dual
from benchmarks.papers.bench import Bench
from benchmarks.papers.dual import Training
from benchmarks.papers.frame import Part, Tables, table
from benchmarks.papers.mlpp import NAMES
from models import catalog
from models.arrays import Bools, Floats
from models.labels.indicator_matrix import collect_labels, indicator_matrix
from models.pipeline import read_documents

ALGORITHMS = ("binary_relevance_perceptron", "mmp", "mlpp")
CHOSEN = ("emotions", "scene", "yeast", "genbase", "medical")
EPOCHS = 10
SEEDS = (0, 1, 2, 3, 4)
MARGINS = (1.0, 4.0, 16.0)
GAMMAS = (0.5, 2.0)
N_RESAMPLES = 1000
LEVEL = 0.95

VARIANTS: dict[str, Json] = {
    "plain": {},
    **{f"margin {margin:g}": {"margin": margin} for margin in MARGINS},
    **{f"rbf {gamma:g}": {"gamma": gamma} for gamma in GAMMAS},
    "random ties": {"random_ties": True},
    "random weights": {"initial": "random"},
}
BASES = {"random weights": "zero weights"}
"""What a variant is compared with, if not the plain learner. Learners draw other orders than dual forms."""
OF_LEARNERS: dict[str, Json] = {"zero weights": {"initial": "zeros"}}

MEASURES = {"average_precision": "AvgP × 100", "right_sets": "right sets [%]"}


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the measures of each learner and variant, and their differences to the plain learner."""
    X, Y, X_test, Y_test = _parts(corpus)
    seeds = SEEDS[:1] if bench.quick else SEEDS
    epochs = 1 if bench.quick else EPOCHS
    resamples = _Resamples(len(X_test), len(seeds))
    values: dict[str, dict[str, dict[str, list[Floats]]]] = {}
    for algorithm, variant, scores, predicted in _trained(X, Y, X_test, epochs=epochs, seeds=seeds):
        result = values.setdefault(algorithm, {}).setdefault(variant, {measure: [] for measure in MEASURES})
        result["average_precision"].append(average_precisions(scores, Y_test))
        if predicted is not None:
            result["right_sets"].append((predicted == Y_test).all(axis=1).astype(np.float64))
    return {
        "training": len(X),
        "test": len(X_test),
        "labels": Y.shape[1],
        "epochs": epochs,
        "seeds": len(seeds),
        "learners": {
            algorithm: {
                variant: {
                    measure: _summary(result[measure], _base(variants, variant, measure), resamples)
                    for measure in MEASURES
                    if result[measure]
                }
                for variant, result in variants.items()
                if variant in VARIANTS
            }
            for algorithm, variants in values.items()
        },
        "svm": _svm(X, Y, X_test, Y_test),
    }


def _parts(corpus: str) -> tuple[Floats, Bools, Floats, Bools]:
    """Return features and labels of the corpus' own split. The mean squared length of the examples is 1."""
    training, test = split(EXAMPLES[corpus]())
    labels = collect_labels(training.labels)
    parameters: Json = {"kind": "numeric", "scaling": "max_abs" if corpus in MEASUREMENTS else "unit"}
    if training.kind == "text":
        parameters = {"kind": "text", "weighting": "tfidf", "scaling": "unit"}
    features = catalog.create_features(catalog.FEATURES_PARAMETERS.validate_python(parameters))
    Y, Y_test = (indicator_matrix(part.labels, labels) for part in (training, test))
    X = features.fit_transform(read_documents(training.documents), Y).toarray()
    X_test = features.transform(read_documents(test.documents)).toarray()
    length = np.sqrt((X**2).sum(axis=1).mean())
    return X / length, Y.toarray() != 0, X_test / length, Y_test.toarray() != 0


def _trained(
    X: Floats, Y: Bools, X_test: Floats, *, epochs: int, seeds: tuple[int, ...]
) -> Iterator[tuple[str, str, Floats, Bools | None]]:
    """Yield learner, variant, scores, and predicted label sets if the learner has an own decision.

    The label sets of MLPP are those of the artificial label.
    """
    kernels: dict[float | None, Callable[[Floats, Floats], Floats]] = {None: dual.linear}
    kernels |= {gamma: dual.rbf(gamma) for gamma in GAMMAS}
    matrices = {gamma: (kernel(X, X), kernel(X_test, X)) for gamma, kernel in kernels.items()}
    for variant, parameters in (VARIANTS | OF_LEARNERS).items():
        for seed in seeds:
            train: Callable[[str], Floats]
            if "initial" in parameters:
                train = partial(_by_learner, X, Y, X_test, epochs=epochs, seed=seed, **parameters)
            else:
                training = Training(
                    epochs,
                    shuffle=True,
                    seed=seed,
                    margin=parameters.get("margin", 0.0),
                    random_ties=parameters.get("random_ties", False),
                )
                K, K_test = matrices[parameters.get("gamma")]
                train = partial(_in_dual_form, K, Y, K_test, training)
            of_labels = train("binary_relevance_perceptron")
            yield "binary_relevance_perceptron", variant, of_labels, of_labels > 0
            yield "mmp", variant, train("mmp"), None
            votes = train("mlpp")
            artificial = (of_labels < 0).sum(axis=1, keepdims=True)
            yield "mlpp", variant, votes, votes + (of_labels >= 0) > artificial


def _in_dual_form(K: Floats, Y: Bools, K_test: Floats, training: Training, algorithm: str) -> Floats:
    outputs = dual.outputs(algorithm, K, Y, K_test, training)
    return dual.votes(outputs, Y.shape[1]) if algorithm == "mlpp" else outputs


def _by_learner(
    X: Floats, Y: Bools, X_test: Floats, algorithm: str, *, epochs: int, seed: int, initial: str
) -> Floats:
    """Train with the initial weights of the learners, which the dual form does not have."""
    parameters = {"algorithm": algorithm, "epochs": epochs, "initial": initial, "shuffle": True}
    learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters), seed=seed)
    return np.asarray(learner.fit(X, Y.astype(np.int8)).decision_function(X_test))


def _svm(X: Floats, Y: Bools, X_test: Floats, Y_test: Bools) -> dict[str, float]:
    """Return the measures of linear SVMs on the same features."""
    learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}), seed=0)
    scores = np.asarray(learner.fit(X, Y.astype(np.int8)).decision_function(X_test))
    return {
        "average_precision": round(100 * float(np.nanmean(average_precisions(scores, Y_test))), 2),
        "right_sets": round(100 * float(((scores > 0) == Y_test).all(axis=1).mean()), 2),
    }


def average_precisions(scores: Floats, relevant: Bools) -> Floats:
    """Return the average precision of each example (eq. 8); not a number without relevant labels.

    >>> average_precisions(np.array([[3.0, 2.0, 1.0]]), np.array([[True, False, True]])).round(3).tolist()
    [0.833]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(relevant, order, axis=1)
    precisions = np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)
    with np.errstate(invalid="ignore"):
        result: Floats = (precisions * ranked).sum(axis=1) / ranked.sum(axis=1)
    return result


def _base(variants: dict[str, dict[str, list[Floats]]], variant: str, measure: str) -> list[Floats] | None:
    """Return the values with which a variant is compared."""
    return None if variant == "plain" else variants[BASES.get(variant, "plain")][measure]


class _Resamples:
    """Test examples and random orders, drawn with replacement.

    Args:
        n: number of test examples.
        n_seeds: number of random orders.
    """

    def __init__(self, n: int, n_seeds: int) -> None:
        rng = np.random.default_rng(0)
        self.examples = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES).astype(np.float64)
        self.orders = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=N_RESAMPLES) / n_seeds

    def means(self, values: Floats) -> Floats:
        """Return the means of (seeds, n) values, of which some examples are not a number."""
        known = ~np.isnan(values[0])
        weights = self.examples[:, known]
        by_seed = weights @ values[:, known].T / weights.sum(axis=1, keepdims=True)
        return np.asarray((by_seed * self.orders).sum(axis=1))


def _summary(values: list[Floats], base: list[Floats] | None, resamples: _Resamples) -> Json:
    """Return the mean over seeds, and the difference to the base with its interval, times 100.

    Without a base, return the standard deviation over seeds instead of the difference.
    """
    of_seeds = 100 * np.array(values)
    value = round(float(np.nanmean(of_seeds)), 2)
    if base is None:
        return {"value": value, "deviation": round(float(np.std(np.nanmean(of_seeds, axis=1))), 2)}
    differences = of_seeds - 100 * np.array(base)
    low, high = np.quantile(resamples.means(differences), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "value": value,
        "difference": round(float(np.nanmean(differences)), 2),
        "low": round(float(low), 2),
        "high": round(float(high), 2),
    }


def _tables(figures: Json) -> Tables:
    abouts = [
        [name, *(f"{result[each]:,}" for each in ("training", "test", "labels", "seeds"))]
        for name, result in figures.items()
    ]
    yield table(["corpus", "training examples", "test examples", "labels", "random orders"], abouts)
    learners = next(iter(figures.values()))["learners"]
    columns = [(a, measure) for a in ALGORITHMS for measure in MEASURES if measure in learners[a]["plain"]]

    def wins(variant: str, algorithm: str, measure: str) -> str:
        result = [_direction(corpus["learners"][algorithm][variant][measure]) for corpus in figures.values()]
        return f"{result.count(1)} : {result.count(-1)}"

    yield table(
        ["", *(f"{NAMES[algorithm]}, {MEASURES[measure]}" for algorithm, measure in columns)],
        [[v, *(wins(v, *column) for column in columns)] for v in VARIANTS if v != "plain"],
    )
    for algorithm, measure in columns:
        rows = [
            [v, *(_cell(result["learners"][algorithm][v][measure]) for result in figures.values())]
            for v in VARIANTS
        ]
        rows.append(["`svm`", *(f"{result['svm'][measure]:.1f}" for result in figures.values())])
        yield table(["", *figures], rows)


def _cell(result: Json) -> str:
    if "deviation" in result:
        return f"{result['value']:.1f} ± {result['deviation']:.1f}"
    difference = f"{result['difference']:+.1f}"
    if _direction(result):
        difference = f"**{difference}**"
    return f"{result['value']:.1f}, {difference} [{result['low']:+.1f}, {result['high']:+.1f}]"


def _direction(result: Json) -> int:
    """Return 1 or -1 if the variant is better or worse with an interval without 0, else 0."""
    return int(result["low"] > 0) - int(result["high"] < 0)


PARTS = {"perceptron_variants": Part({corpus: partial(_measure, corpus) for corpus in CHOSEN}, _tables)}
