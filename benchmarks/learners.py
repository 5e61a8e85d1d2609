"""Measure the costs of all learners as ratios. Both sides of a ratio run in this process with one thread.

python benchmarks/learners.py [--quick]

Runs the benchmarks of the learners (see boosting_rounds, adaboost_lc_round, perceptrons and hm3), measures
the scoring of a batch, and prints all ratios with their goals. ``--quick`` uses fewer rounds, terms and
repeats, and its figures are inaccurate. ``COVEY_DATA`` is the folder of the corpora.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import warnings
from dataclasses import dataclass, field
from functools import partial

from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import adaboost_lc_round, boosting_rounds, hm3, perceptrons
from models.base import Context, Learner
from models.baselines.naive_bayes import NaiveBayes
from models.baselines.svm import SVM
from models.boosting.adaboost_lc import AdaBoostLC
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost
from models.hierarchy.h_m3 import HM3
from models.hierarchy.h_svm import HSVM
from models.measures.tree import zero_one_loss
from models.perceptrons import MMP, BinaryRelevancePerceptron


@dataclass
class Table:
    """Collects the ratios for the table at the end."""

    rows: list[str] = field(default_factory=list)

    def at_least(self, name: str, measured: float, limit: float) -> None:
        """Add a ratio with a lower limit."""
        self._add(name, measured, f"≥ {limit:.3g}", met=measured >= limit)

    def at_most(self, name: str, measured: float, limit: float) -> None:
        """Add a ratio with an upper limit."""
        self._add(name, measured, f"≤ {limit:.3g}", met=measured <= limit)

    def without_goal(self, name: str, measured: float) -> None:
        """Add a ratio without a limit."""
        self.rows.append(f"{name:72} {measured:9.3g}")

    def print(self) -> None:
        """Print the table."""
        print("", f"{'':72} {'measured':>9} {'goal':>9}", *self.rows, sep="\n")

    def _add(self, name: str, measured: float, goal: str, *, met: bool) -> None:
        self.rows.append(f"{name:72} {measured:9.3g} {goal:>9}  {'met' if met else 'NOT MET'}")


def title(text: str) -> None:
    """Print the title of a part."""
    print(f"\n== {text}", flush=True)


def boosting(table: Table, rounds: int) -> None:
    """Compare rounds of both learners with a plain round."""
    title("boosting, compared with a plain vectorised round (Reuters-21578, all terms)")
    X, Y, _ = boosting_rounds.reuters()
    for name, together in (("adaboost_mh", True), ("mp_boost", False)):
        ratio = boosting_rounds.compare_rounds(name, X, Y, rounds, together=together)
        table.at_least(f"{name}: speed of a round relative to a plain round", ratio, 5.0)


def covering(table: Table, repeat: int) -> None:
    """Measure a parallel round of AdaBoost.LC in sparse-dense products of the same size."""
    title("adaboost_lc, in sparse-dense products of the same size")
    for name, problem in (
        ("Reuters-21578", adaboost_lc_round.reuters()),
        ("generated", adaboost_lc_round.generated(50_000)),
    ):
        products = adaboost_lc_round.compare(name, *problem, repeat)
        table.at_most(f"adaboost_lc: products per round, {name}, most expensive covering", products, 2.5)


def online(table: Table, terms: int, repeats: int) -> None:
    """Measure epochs of the perceptrons, and the scoring of a batch with linear and boosted learners."""
    title(f"perceptrons, compared with scikit-learn (Reuters-21578, {terms:,} terms)")
    X, Y, X_test, _ = perceptrons.reuters(terms)
    ratios = perceptrons.training(X, Y, repeats)
    table.at_most("mmp: time per epoch relative to one-vs-rest Perceptron(max_iter=1)", ratios["mmp"], 1.0)
    table.at_most(
        "mlpp: operations per epoch relative to 2L times those of mmp (eq. 9)", ratios["operations"], 1.0
    )
    table.without_goal("mlpp: time per epoch relative to mmp", ratios["mlpp"])

    title(f"scoring {X_test.shape[0]:,} documents, compared with scikit-learn's one-vs-rest linear SVM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svm = OneVsRestClassifier(LinearSVC()).fit(X, Y.toarray())
    theirs = perceptrons.best(partial(svm.decision_function, X_test), repeats)
    print(f"{'scikit-learn':32} {theirs * 1e3:7.1f} ms")
    learners: list[Learner] = [
        AdaBoostMH(rounds=50), MPBoost(rounds=50), AdaBoostLC(rounds=5), MMP(), BinaryRelevancePerceptron(),
        NaiveBayes(), SVM(), HSVM(), HM3(passes=1),
    ]  # fmt: skip
    for learner in learners:
        learner.fit(X, Y, context=Context())
        ours = perceptrons.best(partial(learner.decision_function, X_test), repeats)
        print(f"{learner.algorithm:32} {ours * 1e3:7.1f} ms", flush=True)
        table.at_least(
            f"{learner.algorithm}: speed of scoring relative to the one-vs-rest SVM", theirs / ours, 1.0
        )


def hierarchy(table: Table, *, quick: bool) -> None:
    """Measure H-M3's time to small duality gaps, and compare its zero-one loss with a flat SVM."""
    title("h_m3 (the CCAT family of the RCV1 part)")
    X, Y, Z, true, parents = hm3.ccat()
    context = Context(parents=parents)
    learner = HM3(gap=5e-2) if quick else HM3()
    _, reached = hm3.train(learner, X, Y, context, trace=True)
    for gap, seconds in hm3.TARGETS.items():
        if gap in reached or not quick:
            table.at_most(
                f"h_m3: seconds to a relative gap of {gap:g}", reached.get(gap, float("inf")), seconds
            )
    flat = 100 * zero_one_loss(true, SVM().fit(X, Y).predict(Z))
    table.at_most(
        "h_m3: zero-one loss in %, limit: flat SVM", 100 * zero_one_loss(true, learner.predict(Z)), flat
    )


def main() -> None:
    """Run all parts and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, terms and repeats")
    quick = parser.parse_args().quick
    table = Table()
    with threadpool_limits(1):
        boosting(table, 25 if quick else 200)
        covering(table, 2 if quick else 7)
        online(table, 2_000 if quick else 10_000, 1 if quick else 5)
        hierarchy(table, quick=quick)
    table.print()


if __name__ == "__main__":
    main()
