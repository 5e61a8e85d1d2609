"""Test whether the configurations of an experiment differ significantly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from app.experiments.report.cells import CellResult
from app.experiments.report.schemas import Comparison, ReportTest
from models.arrays import Floats
from models.measures.significance import Alternative, TestResult, holm, paired_wald, wilcoxon_signed_rank

MIN_FOLDS = 3
"""The smallest number of folds that a test over folds needs."""

TESTS_OVER_EXAMPLES: Mapping[str, Callable[[Floats, Floats, Alternative], TestResult]] = {
    "wald": paired_wald,
    "wilcoxon": wilcoxon_signed_rank,
}
TESTS_OVER_FOLDS = {"wilcoxon": wilcoxon_signed_rank}


def compare_configurations(
    results: Mapping[int, Mapping[int, CellResult]],
    measures: Sequence[str],
    alternative: Alternative = "two_sided",
) -> list[Comparison]:
    """Compare every pair of configurations by every measure.

    The p-values of each measure and test are corrected together by Holm's method.

    Args:
        results: results by configuration and fold.
        measures: names of the measures.
        alternative: what the tests can confirm about the first configuration of each pair.
    """
    comparisons: list[Comparison] = []
    for measure in measures:
        by_measure = [
            comparison
            for first, second in itertools.combinations(sorted(results), 2)
            if (comparison := _compare(results, first, second, measure, alternative)) is not None
        ]
        for kind in TESTS_OVER_EXAMPLES:
            tests = [test for comparison in by_measure for test in comparison.tests if test.test == kind]
            for test, corrected in zip(tests, holm([test.p_value for test in tests]), strict=True):
                test.p_corrected = corrected
        comparisons += by_measure
    return comparisons


def _compare(
    results: Mapping[int, Mapping[int, CellResult]],
    first: int,
    second: int,
    measure: str,
    alternative: Alternative,
) -> Comparison | None:
    """Compare two configurations over the folds that both completed; return None if that is impossible."""
    folds = sorted(set(results[first]) & set(results[second]))
    sides = [[results[side][fold] for fold in folds] for side in (first, second)]
    if not folds or any(cell.test_measure(measure) is None for side in sides for cell in side):
        return None
    means = [np.array([cell.test_measure(measure) for cell in side], dtype=np.float64) for side in sides]
    over_examples = all(measure in cell.examples for side in sides for cell in side)
    if over_examples:
        values = [np.concatenate([cell.examples[measure] for cell in side]) for side in sides]
        defined = ~np.isnan(values[0]) & ~np.isnan(values[1])
        pairs = [side[defined] for side in values]
        tests = TESTS_OVER_EXAMPLES
    else:
        pairs = means
        tests = TESTS_OVER_FOLDS if len(folds) >= MIN_FOLDS else {}
    return Comparison(
        measure=measure,
        first=first,
        second=second,
        over="examples" if over_examples else "folds",
        difference=float(means[0].mean() - means[1].mean()),
        tests=[
            _report_test(kind, test(pairs[0], pairs[1], alternative), alternative)
            for kind, test in tests.items()
        ],
    )


def _report_test(kind: str, result: TestResult, alternative: Alternative) -> ReportTest:
    return ReportTest.model_validate(
        {
            "test": kind,
            "alternative": alternative,
            "pairs": result.n,
            "statistic": result.statistic if math.isfinite(result.statistic) else None,
            "p_value": result.p_value,
            "p_corrected": result.p_value,  # corrected later, with the other tests by the same measure
        }
    )
