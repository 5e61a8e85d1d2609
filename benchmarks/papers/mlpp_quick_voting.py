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


def run(bench: Bench) -> str:
    """Return the inner products by the number of requested labels, and whether the rankings are the same."""
    texts = [row["text"] for row in corpora.records("rcv1subset1.jsonl.gz") if row["split"] == "test"]
    texts = texts[: 100 if bench.quick else 1_000]
    jobs = bench.train(
        [
            {
                "dataset_id": rcv1(bench),
                "split": {"kind": "given"},
                **configuration("mlpp", RCV1_FEATURES, epochs=1, **extra),
            }
            for extra in ({}, {"voting": "weighted"})
        ]
    )
    facts = bench.version(jobs[0])["facts"]
    full = facts["operations_per_prediction"]
    training = facts["perceptron_operations"] / facts["examples"]
    rows, differing = [], 0
    rankings = [[p["ranking"] for p in _predicted(bench, job, texts, top=max(TOPS))] for job in jobs]
    for top in TOPS:
        row = [str(top)]
        for job, whole in zip(jobs, rankings, strict=True):
            products = []
            for prediction, ranking in zip(
                _predicted(bench, job, texts, top=top, quick=True), whole, strict=True
            ):
                products.append(prediction["dot_products"])
                differing += prediction["ranking"] != ranking[:top]
            mean = sum(products) / len(products)
            row.append(f"{mean:,.0f} ({100 * mean / full:.0f} %)")
        rows.append(row)
    equal = "The labels and their scores are the same as with full voting"
    if differing:
        equal += f", except in {differing} rankings"
    return f"""\
The mean number of inner products per test document of the RCV1 part after one epoch. Full voting needs {full:,}.
A vote counts 1 (`max_wins`) or the size of the inner product (`weighted`). The bounds of `weighted` need 2K additional products.

{table(["requested labels", *(f"`{voting}`" for voting in VOTINGS)], rows)}

{equal} ({len(texts):,} documents, {len(TOPS)} numbers of labels,
both kinds of votes). The paper has no figures. It expects that quick voting with the artificial label reduces the cost of
predictions to the cost of training, which is {training:,.0f} operations per document here. Each winning label needs all of its
{int((1 + (1 + 8 * full) ** 0.5) / 2) - 1} inner products. The remaining inner products are for labels that could have won instead.
"""


def _predicted(bench: Bench, job: Json, texts: Sequence[str], **query: int | bool) -> Iterator[Json]:
    path = f"/v1/models/{job['result']['model']}/predict"
    for first in range(0, len(texts), AT_ONCE):
        instances = [{"text": text} for text in texts[first : first + AT_ONCE]]
        body = {"instances": instances, "version": job["result"]["version"], **query}
        yield from bench("POST", path, json=body)["predictions"]
