"""MLPP, section VI-E: inner products that quick voting saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.mlpp import RCV1_FEATURES, configuration, rcv1
from benchmarks.papers.results import table

TITLE = "MLPP, section VI-E: quick voting"

VOTINGS = ("max_wins", "weighted")
TOPS = (1, 3, 5, 10)
AT_ONCE = 100


def _tops(bench: Bench) -> Json:
    """Return the inner products by the number of requested labels, and how many rankings differ.

    Returns:
        ``products``: mean number by voting and number of labels. ``full``: products of full voting.
        ``training``: operations of the training for each example.
    """
    texts = _texts(bench)
    jobs = _trained(bench, calibrated=False)
    facts = bench.version(jobs[0])["facts"]
    products: dict[str, dict[str, float]] = {voting: {} for voting in VOTINGS}
    differing = 0
    for voting, job in zip(VOTINGS, jobs, strict=True):
        whole = [p["ranking"] for p in _predicted(bench, job, texts, top=max(TOPS))]
        for top in TOPS:
            quick = list(_predicted(bench, job, texts, top=top, quick=True))
            products[voting][str(top)] = sum(p["dot_products"] for p in quick) / len(quick)
            differing += sum(p["ranking"] != ranking[:top] for p, ranking in zip(quick, whole, strict=True))
    return {
        "documents": len(texts),
        "labels": int(facts["labels"]),
        "products": products,
        "differing": differing,
        "full": facts["operations_per_prediction"],
        "training": facts["perceptron_operations"] / facts["examples"],
    }


RESULTS = {"tops": _tops}


def render(figures: dict[str, Json]) -> str:
    """Return the inner products by the number of requested labels, and whether the rankings are the same."""
    found = figures["tops"]
    full, products = found["full"], found["products"]
    rows = [
        [top, *(f"{products[v][top]:,.0f} ({100 * products[v][top] / full:.0f} %)" for v in VOTINGS)]
        for top in products[VOTINGS[0]]
    ]
    equal = "The labels and their scores are the same as with full voting"
    if found["differing"]:
        equal += f", except in {found['differing']} rankings"
    return f"""\
The mean number of inner products per test document of the RCV1 part after one epoch. Full voting needs {full:,}.
A vote counts 1 (`max_wins`) or the size of the inner product (`weighted`). The bounds of `weighted` need 2K additional products.

{table(["requested labels", *(f"`{voting}`" for voting in VOTINGS)], rows)}

{equal} ({found["documents"]:,} documents, {len(products[VOTINGS[0]])} numbers of labels,
both kinds of votes). The paper has no figures. It expects that quick voting with the artificial label reduces the cost of
predictions to the cost of training, which is {found["training"]:,.0f} operations per document here. Each winning label needs all of its
{found["labels"] - 1} inner products. The remaining inner products are for labels that could have won instead.
"""


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
            }
            for voting in VOTINGS
        ]
    )


def _predicted(bench: Bench, job: Json, texts: Sequence[str], **query: int | bool) -> Iterator[Json]:
    path = f"/v1/models/{job['result']['model']}/predict"
    for first in range(0, len(texts), AT_ONCE):
        instances = [{"text": text} for text in texts[first : first + AT_ONCE]]
        body = {"instances": instances, "version": job["result"]["version"], **query}
        yield from bench("POST", path, json=body)["predictions"]
