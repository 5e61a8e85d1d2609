"""The costs of learners and features as ratios. Both sides of a ratio run in this process with one thread."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.corpora import ccat_problem, indicator, labels_of, large, records, reuters, reuters_problem
from benchmarks.plain_rounds import PlainRounds
from models.arrays import Labels, Matrix
from models.base import Context, Learner, Problem, Step
from models.base.validation import as_feature_matrix, as_training_matrices
from models.baselines.naive_bayes import NaiveBayes
from models.baselines.svm import SVM
from models.boosting.adaboost_lc import AdaBoostLC
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.adaboost_mh_rounds import AdaBoostMHRounds
from models.boosting.mp_boost import MPBoost
from models.boosting.mp_boost_rounds import MPBoostRounds
from models.boosting.stumps import presence_stumps
from models.boosting.templates import Templates
from models.boosting.weight_sums import CoveringTrainingSet
from models.covering import parse_covering
from models.features import TextFeatures, TextFeaturesParameters
from models.hierarchy.h_m3 import HM3
from models.hierarchy.h_svm import HSVM
from models.measures.tree import zero_one_loss
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron
from models.text import AnalyzerParameters
from models.text.analyzer import WordAnalysis
from models.text.tokens import words

COVERINGS = ("hamming", "zero_one", "two_sets", "weighted_positive", "weighted_negative")

ANALYZERS = {
    "lower case": AnalyzerParameters(),
    "lower case, no numbers or stop words": AnalyzerParameters(drop_numbers=True, stop_words="english"),
    "the same, Porter stems": AnalyzerParameters(drop_numbers=True, stop_words="english", stemmer="porter"),
}

SCORED: tuple[Callable[[], Learner], ...] = (
    *(partial(AdaBoostMH, rounds=50), partial(MPBoost, rounds=50), partial(AdaBoostLC, rounds=5)),
    *(MMP, BinaryRelevancePerceptron, NaiveBayes, SVM, HSVM, partial(HM3, passes=1)),
)


@dataclass(frozen=True)
class Case:
    """A ratio, or another cost.

    Attributes:
        name: what is measured.
        measure: returns the ratio; a quick measurement has fewer rounds, terms and repeats, and is
            inaccurate.
        at_least: smallest value that is good enough.
        at_most: largest value that is good enough.
    """

    name: str
    measure: Callable[[bool], float]
    at_least: float | None = None
    at_most: float | None = None

    def row(self, measured: float) -> str:
        """Return a line of the table."""
        goal = ""
        if self.at_least is not None:
            goal = f"≥ {self.at_least:.3g}  {'met' if measured >= self.at_least else 'NOT MET'}"
        if self.at_most is not None:
            goal = f"≤ {self.at_most:.3g}  {'met' if measured <= self.at_most else 'NOT MET'}"
        return f"{self.name:76} {measured:9.3g}  {goal}".rstrip()


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the minimum CPU time of several runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


@cache
def tfidf(terms: int | None) -> tuple[Matrix, Labels, Matrix]:
    """Return Reuters-21578 as scikit-learn's tf-idf of the most frequent terms or of all."""
    training, test = (reuters(split) for split in ("train", "test"))
    vectorizer = TfidfVectorizer(stop_words="english", max_features=terms)
    X = as_feature_matrix(vectorizer.fit_transform([row["text"] for row in training]))
    X_test = as_feature_matrix(vectorizer.transform([row["text"] for row in test]))
    return X, indicator(training, labels_of(training)), X_test


# Boosting, compared with plain vectorised rounds on Reuters-21578 with all terms


def rounds(*, together: bool, quick: bool) -> float:
    """Measure rounds and, every few rounds, the plain round with the same weights and the same pivots.

    Returns:
        The plain round's time divided by the learner's.
    """
    problem = reuters_problem(weighting="binary")
    X, Y = as_training_matrices(problem.X, problem.Y)
    stumps = presence_stumps(X)
    fast = (AdaBoostMHRounds if together else MPBoostRounds)(stumps, Y, "real", 1 / (Y.shape[0] * Y.shape[1]))
    plain = PlainRounds(X, Y, together=together)
    n_rounds = 25 if quick else 200
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(n_rounds):
        check = number % max(1, n_rounds // 25) == 0
        if check:
            plain.D = np.abs(fast.weights if together else fast.weights.T.copy())
            start = time.process_time()
            expected = plain.choose_pivots()
            choosing = time.process_time() - start
        start = time.process_time()
        pivots = fast.choose_pivots()
        assert pivots is not None
        fast.boost(pivots)
        seconds[0].append(time.process_time() - start)
        if check:
            chosen = stumps.features[pivots]
            tied = (
                plain.Z[chosen, np.arange(len(chosen))] <= plain.Z.min(axis=0) + 1e-7
            )  # up to rounding errors
            assert ((chosen == expected) | tied | (pivots < 0)).all()
            start = time.process_time()
            plain.boost(expected)
            seconds[1].append(choosing + time.process_time() - start)
    return float(np.median(seconds[1]) / np.median(seconds[0]))


# AdaBoost.LC, in sparse-dense products of the same size


def products(data: Callable[[], tuple[Matrix, Labels]], quick: bool) -> float:
    """Return the time of a parallel round with the most expensive covering, in products.

    A product is the mean of SciPy's X A and Xᵀ Q, for the g x r matrix X of the features and dense A (r x k)
    and Q (g x k). A round is everything between two calls of the monitor, including the training loss and
    error.
    """
    X, Y = data()
    A = np.random.default_rng(1).normal(size=(X.shape[1], Y.shape[1]))
    Q = X @ A
    labels = [str(label) for label in range(Y.shape[1])]
    ratios = []
    for kind in COVERINGS:
        covering = parse_covering({"kind": kind}).compile(labels)
        training_set = CoveringTrainingSet(X, Y, covering, merge_equal=True)
        columns = training_set.columns
        templates = Templates.of("parallel", X, [], columns, training_set.scale)
        weights = np.zeros((len(columns.first_feature), Y.shape[1]))
        sums = [training_set.sums(weights)]

        def take_round(
            training_set: CoveringTrainingSet = training_set,
            templates: Templates = templates,
            weights: Any = weights,
            sums: list[Any] = sums,
        ) -> None:
            templates.update(weights, sums[0], None)
            sums[0] = training_set.sums(weights)

        work = (lambda: X @ A, lambda: X.T @ Q, take_round)
        times = np.min([[best(call, 1) for call in work] for _ in range(2 if quick else 7)], axis=0)
        ratios.append(float(times[2] / times[:2].mean()))
    return max(ratios)


# Perceptrons, and the scoring of a batch, compared with scikit-learn


def _terms(quick: bool) -> int:
    return 2_000 if quick else 10_000


def _repeats(quick: bool) -> int:
    return 1 if quick else 5


@cache
def epoch(learner: type[MMP | MLPP | BinaryRelevancePerceptron | NaiveBayes] | None, quick: bool) -> float:
    """Return the seconds of an epoch of a learner, or of scikit-learn's one-vs-rest perceptron."""
    X, Y, _ = tfidf(_terms(quick))
    if learner is None:
        dense = Y.toarray()
        perceptrons = OneVsRestClassifier(Perceptron(max_iter=1, tol=None))
        return best(lambda: perceptrons.fit(X, dense), _repeats(quick))
    return best(lambda: learner().fit(X, Y), _repeats(quick))


def svm_training(quick: bool) -> float:
    """Return the time of scikit-learn's one-vs-rest LinearSVC relative to that of the same SVMs here."""
    X, Y, _ = tfidf(_terms(quick))
    dense = Y.toarray()
    theirs = OneVsRestClassifier(LinearSVC(dual="auto"))
    return best(lambda: theirs.fit(X, dense), _repeats(quick)) / best(
        lambda: SVM().fit(X, Y), _repeats(quick)
    )


def operations(quick: bool) -> float:
    """Return the operations of MLPP, of 2L times those of MMP (eq. 9)."""
    X, Y, _ = tfidf(_terms(quick))
    counts = [learner().fit(X, Y).summary_.facts["perceptron_operations"] for learner in (MLPP, MMP)]
    return float(counts[0] / counts[1] / (2 * Y.nnz / Y.shape[0]))


def quick_voting(quick: bool) -> float:
    """Return the time of quick voting for the best label relative to full voting, one message at a time."""
    X, Y, X_test = tfidf(_terms(quick))
    learner = MLPP().fit(X, Y)
    messages = [X_test[i : i + 1] for i in range(200)]
    learner.quick_top(messages[0], 1)  # computes the bounds
    times = [
        best(lambda score=score: [score(x) for x in messages], _repeats(quick))  # type: ignore[misc]
        for score in (lambda x: learner.quick_top(x, 1), learner.decision_function)
    ]
    return times[0] / times[1]


@cache
def scoring(place: int, quick: bool) -> float:
    """Return the milliseconds to score the test part with one of ``SCORED``, or (-1) scikit-learn's SVM."""
    X, Y, X_test = tfidf(_terms(quick))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if place < 0:
            fitted: Any = OneVsRestClassifier(LinearSVC()).fit(X, Y.toarray())
        else:
            fitted = SCORED[place]().fit(X, Y, context=Context())
    milliseconds = 1000 * best(lambda: fitted.decision_function(X_test), _repeats(quick))
    name = "scikit-learn, one-vs-rest linear SVM" if place < 0 else fitted.algorithm
    print(f"  scoring {X_test.shape[0]:,} documents, {name}: {milliseconds:.1f} ms", flush=True)
    return milliseconds


# H-M3 on the CCAT family of RCV1


@cache
def h_m3() -> tuple[list[tuple[float, float]], float, float]:
    """Return gap and seconds of each pass, and the zero-one losses of H-M3 and of a flat SVM."""
    problem, parents = ccat_problem()
    begun = time.perf_counter()
    passes: list[tuple[float, float]] = []

    def note(step: Step) -> None:
        passes.append((step.measures["gap"], time.perf_counter() - begun))

    learner = HM3()
    learner.fit_problem(Problem(problem.X, problem.Y, Context(parents=parents)), monitor=note)
    fitted = (learner, SVM().fit(problem.X, problem.Y))
    true = problem.Y_test.toarray()
    losses = [100 * zero_one_loss(true, each.predict(problem.X_test)) for each in fitted]
    print(f"  zero-one losses of h_m3 and of a flat SVM: {losses[0]:.1f} and {losses[1]:.1f} %", flush=True)
    return passes, losses[0], losses[1]


def seconds_to(gap: float, _: bool) -> float:
    """Return the seconds until H-M3 reaches a duality gap."""
    return next((seconds for reached, seconds in h_m3()[0] if reached <= gap), float("inf"))


# Text features, compared with scikit-learn's CountVectorizer


def counting(parameters: AnalyzerParameters, quick: bool) -> float:
    """Return the time of CountVectorizer relative to Covey, from texts to counts with a sorted vocabulary.

    Both use the same analysis of words. CountVectorizer calls a function that caches the result for each
    word.
    """
    texts = [row["text"] for row in records("reuters21578")][:: 10 if quick else 1]
    rules = parameters.token_rules(None)
    no_labels = csr_array(np.zeros((len(texts), 1), dtype=np.int8))

    def ours() -> tuple[list[str], Matrix]:
        features = TextFeatures(TextFeaturesParameters(kind="text", weighting="tf", analyzer=parameters))
        X = features.fit_transform(texts, no_labels)
        return features.names_, X

    def theirs() -> tuple[list[str], Any]:
        analysis = cache(WordAnalysis(parameters))

        def tokens(text: str) -> list[str]:
            found = words(text, rules)
            if parameters == AnalyzerParameters():
                return found
            return [token for word in found if (token := analysis(word)) is not None]

        vectorizer = CountVectorizer(analyzer=tokens)
        counts = vectorizer.fit_transform(texts)
        return vectorizer.get_feature_names_out().tolist(), counts

    (names, counts), (other_names, other_counts) = ours(), theirs()
    assert names == other_names
    assert abs(counts - csr_array(other_counts)).nnz == 0
    return best(theirs, _repeats(quick)) / best(ours, _repeats(quick))


CASES = (
    *(
        Case(
            f"{name}: speed of a round relative to a plain round",
            lambda quick, together=together: rounds(together=together, quick=quick),  # type: ignore[misc]
            at_least=5.0,
        )
        for name, together in (("adaboost_mh", True), ("mp_boost", False))
    ),
    Case(
        "adaboost_lc: products per round, Reuters-21578, most expensive covering",
        partial(products, lambda: tfidf(None)[:2]),
        at_most=2.5,
    ),
    Case(
        "adaboost_lc: products per round, 50,000 generated documents",
        partial(products, lambda: large(50_000)),
        at_most=2.5,
    ),
    Case(
        "mmp: time per epoch relative to one-vs-rest Perceptron(max_iter=1)",
        lambda quick: epoch(MMP, quick) / epoch(None, quick),
        at_most=1.0,
    ),
    *(
        Case(
            f"{learner().algorithm}: the same",
            lambda quick, learner=learner: epoch(learner, quick) / epoch(None, quick),  # type: ignore[misc]
        )
        for learner in (BinaryRelevancePerceptron, NaiveBayes, MLPP)
    ),
    Case("svm: speed of training relative to one-vs-rest LinearSVC", svm_training, at_least=1.1),
    Case("mlpp: operations per epoch relative to 2L times those of mmp (eq. 9)", operations, at_most=1.0),
    Case("mlpp: time per epoch relative to mmp", lambda quick: epoch(MLPP, quick) / epoch(MMP, quick)),
    Case("mlpp: time of quick voting for the best label relative to full voting", quick_voting),
    *(
        Case(
            f"{create().algorithm}: speed of scoring relative to the one-vs-rest SVM",
            lambda quick, place=place: scoring(-1, quick) / scoring(place, quick),  # type: ignore[misc]
            at_least=1.0,
        )
        for place, create in enumerate(SCORED)
    ),
    *(
        Case(f"h_m3: seconds to a relative gap of {gap:g}", partial(seconds_to, gap), at_most=seconds)
        for gap, seconds in ((5e-2, 30.0), (1e-2, 120.0))
    ),
    Case(
        "h_m3: zero-one loss in %, relative to that of a flat SVM",
        lambda _: h_m3()[1] / h_m3()[2],
        at_most=1.0,
    ),
    *(
        Case(f"text features: speed relative to CountVectorizer, {name}", partial(counting, parameters))
        for name, parameters in ANALYZERS.items()
    ),
)
