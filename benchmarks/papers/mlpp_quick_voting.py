"""MLPP, section VI-E: inner products that quick voting saves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.mlpp import RCV1_FEATURES, configuration, rcv1
from benchmarks.papers.results import table
from models.arrays import Matrix
from models.features import TextFeatures
from models.labels.ranking import ranking
from models.perceptrons import MLPP

TITLE = "MLPP, section VI-E: quick voting"

VOTINGS = ("max_wins", "weighted")
TOPS = (1, 3, 5, 10)


def _tops(bench: Bench) -> Json:
    """Return the inner products by the number of requested labels, and how many rankings differ.

    Returns:
        ``products``: mean number by voting and number of labels. ``largest``: largest number of a document by
        voting. ``full``: products of full voting. ``training``: operations of the training for each example.
    """
    texts = _texts(bench)
    jobs = _trained(bench, calibrated=False)
    facts = bench.version(jobs[0])["facts"]
    products: dict[str, dict[str, float]] = {voting: {} for voting in VOTINGS}
    largest = dict.fromkeys(VOTINGS, 0)
    differing = 0
    for voting, job in zip(VOTINGS, jobs, strict=True):
        learner, X = _learner_and_features(bench, job, texts)
        scores = learner.decision_function(X)
        order = ranking(scores, max(TOPS))
        for top in TOPS:
            votes, best = learner.quick_top(X, top), order[:, :top]
            products[voting][str(top)] = float(votes.products.mean())
            largest[voting] = max(largest[voting], int(votes.products.max()))
            same = (votes.labels == best) & (votes.scores == np.take_along_axis(scores, best, axis=1))
            differing += int((~same.all(axis=1)).sum())
    return {
        "documents": len(texts),
        "labels": int(facts["labels"]),
        "products": products,
        "largest": largest,
        "differing": differing,
        "full": facts["operations_per_prediction"],
        "training": facts["perceptron_operations"] / facts["examples"],
    }


def _label_sets(bench: Bench) -> Json:
    """Return the inner products that the label sets of the artificial label need, and how many sets differ.

    Returns:
        ``products``: mean number by voting. ``largest``: largest number of a document by voting. ``predicted``:
        mean size of the label sets by voting. ``full`` and ``training`` as in the other result.
    """
    texts = _texts(bench)
    jobs = _trained(bench, calibrated=True)
    facts = bench.version(jobs[0])["facts"]
    products, largest, predicted = {}, {}, {}
    differing = 0
    for voting, job in zip(VOTINGS, jobs, strict=True):
        learner, X = _learner_and_features(bench, job, texts)
        whole = learner.decision_function(X) > 0
        votes = learner.quick_top(X, 1, np.zeros(whole.shape[1]))
        products[voting], largest[voting] = float(votes.products.mean()), int(votes.products.max())
        predicted[voting] = float(whole.sum(axis=1).mean())
        differing += int(((votes.known > 0) != whole).any(axis=1).sum())
    return {
        "documents": len(texts),
        "products": products,
        "largest": largest,
        "predicted": predicted,
        "differing": differing,
        "full": facts["operations_per_prediction"],
        "training": facts["perceptron_operations"] / facts["examples"],
    }


RESULTS = {"tops": _tops, "label_sets": _label_sets}


def render(figures: dict[str, Json]) -> str:
    """Return the inner products by the number of requested labels and for the label set."""
    found, sets = figures["tops"], figures["label_sets"]
    products = found["products"]
    rows = [
        [
            "best label" if top == "1" else f"best {top} labels",
            *(_share(products[v][top], found["full"]) for v in VOTINGS),
        ]
        for top in products[VOTINGS[0]]
    ]
    rows.append(["label set (`calibrated`)", *(_share(sets["products"][v], sets["full"]) for v in VOTINGS)])
    most = [max(found["largest"][v] / found["full"], sets["largest"][v] / sets["full"]) for v in VOTINGS]
    equal = "The labels, scores and label sets are the same as with full voting"
    if found["differing"] or sets["differing"]:
        equal += f", except in {found['differing']} rankings and {sets['differing']} label sets"
    cost = sets["products"]["max_wins"] / sets["training"]
    return f"""\
The mean number of inner products per test document of the RCV1 part after one epoch. Full voting needs {found["full"]:,} inner products, and
{sets["full"]:,} with the artificial label of `calibrated`. A vote counts 1 (`max_wins`) or the size of the inner product (`weighted`).
No document can cost more than full voting; the most expensive one costs {100 * most[0]:.0f} % (`max_wins`) and {100 * most[1]:.0f} % (`weighted`) of it.

{table(["wanted", *(f"`{voting}`" for voting in VOTINGS)], rows)}

{equal} ({found["documents"]:,} documents). A label set is that of the labels with more votes than the artificial
label, on average {sets["predicted"]["max_wins"]:.1f} labels with `max_wins` and {sets["predicted"]["weighted"]:.1f} with `weighted`.

`weighted` saves little because a vote can be as large as the product of the lengths of weights and document, which is far above most
votes. A closer bound of the votes of a label costs an inner product. Such bounds are only computed as long as there are fewer of them than inner products
that are already certain to be unnecessary. The table includes them.

The paper has no figures. It expects that quick voting with the artificial label reduces the cost of predictions to the cost of
training, which is {sets["training"]:,.0f} operations per document here (with the artificial label). With `max_wins`, a label set costs {cost:.1f} times as much.
Each label of the set needs all of its {found["labels"]} inner products. The remaining inner products are for labels that could have been in the set
instead.
"""


def _share(products: float, full: int) -> str:
    return f"{products:,.0f} ({100 * products / full:.0f} %)"


def _texts(bench: Bench) -> list[str]:
    texts = [row["text"] for row in corpora.records("rcv1subset1.jsonl.gz") if row["split"] == "test"]
    return texts[: 100 if bench.quick else 1_000]


def _trained(bench: Bench, *, calibrated: bool) -> list[Json]:
    return bench.train(
        [
            {
                "dataset_id": rcv1(bench),
                "split": {"kind": "given"},
                **configuration("mlpp", RCV1_FEATURES, epochs=1, voting=voting, calibrated=calibrated),
                "decision": {"kind": "sign"} if calibrated else {"kind": "top_k", "k": 1},
            }
            for voting in VOTINGS
        ]
    )


def _learner_and_features(bench: Bench, job: Json, texts: Sequence[str]) -> tuple[MLPP, Matrix]:
    """Return the learner of a training, and the features of the texts."""
    model = bench.model(job)
    assert isinstance(model.learner_, MLPP)
    assert isinstance(model.features_, TextFeatures)
    return model.learner_, model.features_.transform(texts)
