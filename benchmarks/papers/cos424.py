"""The COS 424 assignment: AdaBoost.MH on documents with one label each, compared with naive Bayes.

Every second of the twenty newsgroups by name, without headers, and the ten categories of Reuters-21578 with
the most single-label stories, with the 10,000 words that occur in the most training documents of a fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from benchmarks.corpora import Json, folds, jsonl, records, without_headers
from benchmarks.papers.bench import GIVEN, Bench, curves
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.frame import Part, Tables, table

N_FOLDS = 5
ALPHAS = (1.0, 0.1, 0.01)
COSTS = (0.1, 1.0)
"""C of the SVMs."""

SHOWN = (1, 10, 20, 50, 100, 200, 500)
N_WORDS = 25
N_ERRORS = 5
N_TERMS = 4
LEAST = 0.05
"""Percentages below are omitted."""

TITLES = {"newsgroups": "Ten newsgroups", "reuters": "Ten Reuters categories"}


def _rows(bench: Bench, corpus: str) -> list[Json]:
    """Return the documents of a corpus; for small versions, about 1,000 of them."""
    if corpus == "newsgroups":
        rows = [without_headers(row) for row in records("20newsgroups")]
        chosen = {*sorted({row["labels"][0] for row in rows})[::2]}
    else:
        rows = [row for row in records("reuters21578") if len(set(row["labels"])) == 1]
        counts = Counter(row["labels"][0] for row in rows)
        chosen = {*sorted(counts, key=lambda label: (-counts[label], label))[:10]}
    kept = [
        {"id": row["id"], "text": row["text"], "labels": row["labels"][:1]}
        for row in rows
        if row["labels"][0] in chosen
    ]
    return kept[:: len(kept) // 1_000] if bench.quick else kept


def _configuration(learner: Json, **features: str) -> Json:
    """Return a configuration that predicts the label with the highest score."""
    words = {
        "kind": "text",
        "analyzer": {"drop_numbers": True, "stop_words": "english", "min_length": 2},
        "selection": {"kind": "document_frequency", "count": 10_000},
    }
    return {"features": words | features, "learner": learner, "decision": {"kind": "single_label"}}


def _boosting(bench: Bench) -> Json:
    learner = {"algorithm": "adaboost_mh", "rounds": 25 if bench.quick else SHOWN[-1]}
    return _configuration(learner, weighting="binary")


def _naive_bayes(alpha: float) -> Json:
    learner = {"algorithm": "naive_bayes", "label_mode": "single_label", "alpha": alpha}
    return _configuration(learner, weighting="tf")


def _svm(C: float) -> Json:
    return _configuration({"algorithm": "svm", "C": C}, weighting="tfidf", scaling="unit")


def _experiment(bench: Bench, corpus: str, configurations: list[Json]) -> Json:
    dataset = bench.dataset(TITLES[corpus], lambda: jsonl(_rows(bench, corpus)))
    return bench.experiment(dataset, configurations, ["accuracy"], folds=N_FOLDS)


def _trained(bench: Bench, corpus: str) -> list[Json]:
    """Train with each fold held out, and return the jobs. The folds are the same as in the curves."""
    requests = []
    for fold, body in enumerate(folds(_rows(bench, corpus), N_FOLDS)):
        dataset = bench.dataset(f"{TITLES[corpus]}, fold {fold + 1}", partial(bytes, body))
        requests.append({"dataset_id": dataset, "split": GIVEN, **_boosting(bench)})
    return bench.train(requests)


# Question 6: accuracy by rounds


def _accuracies(row: Json) -> Json:
    return {part: row[part]["accuracy"] for part in ("train", "test")}


def _curves(bench: Bench) -> Json:
    """Draw the curves of both corpora, and return accuracies within and out of folds."""
    panels, result = [], {}
    for corpus, title in TITLES.items():
        report = _experiment(bench, corpus, [_boosting(bench), *map(_naive_bayes, ALPHAS)])
        within, out = (curves(report, part)[0, "accuracy"] for part in ("within_folds", "out_of_folds"))
        last, *bayes = map(_accuracies, report["rows"])
        panels.append(
            Panel(
                title,
                [
                    Line("boosting, within folds", within, 0, "--"),
                    Line("boosting, out of folds", out, 0),
                ],
                "rounds",
                "accuracy",
                levels=[
                    (f"naive Bayes, {name} folds", bayes[0][part]["mean"], colour)
                    for name, part, colour in (("within", "train", 2), ("out of", "test", 1))
                ],
            )
        )
        rounds = report["rows"][0]["learner"]["rounds"]
        near = {min(out, key=lambda step: abs(step - n)) for n in SHOWN if n <= rounds} - {rounds}
        best = max(out, key=lambda step: (out[step], -step))
        above = [step for step, value in out.items() if value > bayes[0]["test"]["mean"]]
        result[corpus] = {
            "documents": len(_rows(bench, corpus)),
            "rounds": rounds,
            "points": [[step, within[step], out[step]] for step in out if step in near],
            "boosting": last,
            "naive_bayes": {f"{alpha:g}": row for alpha, row in zip(ALPHAS, bayes, strict=True)},
            "best": {"round": best, "accuracy": out[best]},
            "first_above": above[0] if above else None,
            "difference": last["test"]["mean"] - bayes[0]["test"]["mean"],
        }
    bench.draw("cos424-curves", panels)
    return {"corpora": result}


def _machines(bench: Bench) -> Json:
    """Return the accuracies of SVMs by corpus and C."""
    result = {}
    for corpus in TITLES:
        rows = _experiment(bench, corpus, [*map(_svm, COSTS)])["rows"]
        result[corpus] = {f"{C:g}": _accuracies(row) for C, row in zip(COSTS, rows, strict=True)}
    return result


def _curves_tables(figures: Json) -> Tables:
    for corpus, result in figures["curves"]["corpora"].items():
        rows = [[f"{step:,} rounds", f"{within:.3f}", f"{out:.3f}"] for step, within, out in result["points"]]
        ends = {f"{result['rounds']:,} rounds": result["boosting"]}
        ends |= {f"naive Bayes, α = {alpha}": row for alpha, row in result["naive_bayes"].items()}
        ends |= {f"SVM, C = {C}": row for C, row in figures["machines"][corpus].items()}
        for name, row in ends.items():
            test = row["test"]
            rows.append(
                [name, f"{row['train']['mean']:.3f}", f"{test['mean']:.3f} ± {test['deviation']:.3f}"]
            )
        yield table(["", "within folds", "out of folds"], rows)


# Question 5: words by round and fold


def _words(corpus: str, bench: Bench) -> Json:
    """Return the first words of each fold, and how far the folds agree.

    Returns:
        ``words``: for each fold the words of the first rounds. ``alike``: the round until which all folds
        select the same word. ``agreement``: by number of rounds, the rounds with the same word in all folds,
        the words selected in any fold, and the words selected in all.
    """
    words = [bench.version(job)["facts"]["first_pivots"] for job in _trained(bench, corpus)]
    agree = [len(set(some)) == 1 for some in zip(*words, strict=False)]
    selected = {n: [set(some[:n]) for some in words] for n in (N_WORDS, 100) if n <= len(agree)}
    return {
        "words": [some[:N_WORDS] for some in words],
        "alike": agree.index(False) if False in agree else len(agree),
        "agreement": {
            str(n): [sum(agree[:n]), len(set().union(*some)), len(set.intersection(*some))]
            for n, some in selected.items()
        },
    }


def _words_tables(figures: Json) -> Tables:
    for result in figures.values():
        by_round = enumerate(zip(*result["words"], strict=False), start=1)
        yield table(
            ["round", *(f"fold {fold + 1}" for fold in range(N_FOLDS))],
            [[str(n), *(f"`{word}`" for word in some)] for n, some in by_round],
        )


# Question 7a: confusion matrices


def _confusion(corpus: str, bench: Bench) -> Json:
    """Return the sizes of the classes, the shares of predictions by class, and the share of correct ones."""
    counts: Counter[tuple[str, str]] = Counter()
    for job in _trained(bench, corpus):
        for pair in bench.version(job, "/evaluation")["test"]["confusion"]:
            counts[pair["label"], pair["predicted"]] += pair["count"]
    labels = sorted({label for pair in counts for label in pair})
    sizes = {label: sum(counts[label, other] for other in labels) for label in labels}
    return {
        "sizes": sizes,
        "shares": {one: [counts[one, other] / sizes[one] for other in labels] for one in labels},
        "correct": sum(counts[label, label] for label in labels) / sum(sizes.values()),
    }


def _confusion_tables(figures: Json) -> Tables:
    def cell(share: float, *, own: bool) -> str:
        shown = f"{100 * share:.1f}" if 100 * share >= LEAST else ""
        return f"**{shown}**" if own and shown else shown

    for result in figures.values():
        labels = list(result["sizes"])
        yield table(
            ["", *labels],
            [
                [
                    f"{label} ({size:,})",
                    *(
                        cell(share, own=label == other)
                        for other, share in zip(labels, result["shares"][label], strict=True)
                    ),
                ]
                for label, size in result["sizes"].items()
            ],
        )


# Question 7b: error analysis


def _errors(corpus: str, bench: Bench) -> Json:
    """Return the largest errors of the first fold: labels, scores and terms."""
    job = _trained(bench, corpus)[0]
    documents = []
    for document in bench.version(job, "/evaluation")["test"]["worst"][:N_ERRORS]:
        scores = {score["label"]: score["score"] for score in document["scores"]}
        terms = {
            one["label"]: [[term["term"], term["weight"]] for term in one["terms"]]
            for one in document["explanation"]
        }
        has, got = document["labels"][0], document["predicted"][0]
        documents.append(
            {
                "id": document["id"],
                "true": [has, scores[has]],
                "predicted": [got, scores[got]],
                "terms_for": [term for term in terms[got] if term[1] > 0][:N_TERMS],
                "terms": terms[has][:N_TERMS],
            }
        )
    return {"documents": documents}


def _errors_tables(figures: Json) -> Tables:
    head = ("document", "true label (score)", "predicted label (score)", "terms for the predicted label")
    for result in figures.values():
        rows = []
        for document in result["documents"]:
            labels = [f"{label} ({score:.2f})" for label, score in (document["true"], document["predicted"])]
            terms = [
                ", ".join(f"`{term}` {weight:+.2f}" for term, weight in document[name]) or "none"
                for name in ("terms_for", "terms")
            ]
            rows.append([f"`{document['id']}`", *labels, *terms])
        yield table([*head, "terms of the true label"], rows)


def _for_each(measure: Callable[[str, Bench], Json]) -> dict[str, Callable[[Bench], Json]]:
    return {corpus: partial(measure, corpus) for corpus in TITLES}


PARTS = {
    "cos424_curves": Part({"curves": _curves, "machines": _machines}, _curves_tables),
    "cos424_words": Part(_for_each(_words), _words_tables),
    "cos424_confusion": Part(_for_each(_confusion), _confusion_tables),
    "cos424_errors": Part(_for_each(_errors), _errors_tables),
}
