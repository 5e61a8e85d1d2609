"""The significance tests of an experiment have the alternative of its request."""

from __future__ import annotations

from typing import Any

import in_process
from in_process_api import InProcessApi

# The first configuration is right for all six test examples. The second predicts both labels, so it is right
# for none of them.
EXAMPLES = [
    {"features": {"x": 1.0}, "labels": ["a"], "split": "train"},
    {"features": {"x": -1.0}, "labels": ["b"], "split": "train"},
    *({"features": {"x": 0.5}, "labels": ["a"], "split": "test"} for _ in range(6)),
]
LEARNER = {"learner": {"algorithm": "binary_relevance_perceptron"}}
CONFIGURATIONS = [
    {"name": "right", **LEARNER, "decision": {"kind": "sign"}},
    {"name": "wrong", **LEARNER, "decision": {"kind": "top_k", "k": 2}},
]


def experiment(service: InProcessApi, dataset: str, **fields: Any) -> str:
    body = {"dataset_id": dataset, "configurations": CONFIGURATIONS, "measures": ["accuracy"], **fields}
    created: str = service.call("POST", "/v1/experiments", 202, json=body)["id"]
    in_process.work(service.ctx)
    return created


def test_the_alternative_of_a_request_decides_the_p_values(service: InProcessApi) -> None:
    body = {"name": "d", "examples": EXAMPLES}
    dataset = service.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(service.ctx)
    p_values = {}
    for alternative in ("two_sided", "greater", "less"):
        fields = {} if alternative == "two_sided" else {"alternative": alternative}
        created = experiment(service, dataset, **fields)
        report = service.call("GET", f"/v1/experiments/{created}/report", 200)
        (comparison,) = report["comparisons"]
        tests = {test["test"]: test for test in comparison["tests"]}
        assert {test["alternative"] for test in tests.values()} == {alternative}
        p_values[alternative] = (tests["wald"]["p_value"], tests["wilcoxon"]["p_value"])
        markdown = service.send("GET", f"/v1/experiments/{created}/report?format=markdown").text
        html = service.send("GET", f"/v1/experiments/{created}/report?format=html").text
        sentence = (
            "Two-sided paired tests"
            if alternative == "two_sided"
            else f"the values of the first configuration are {alternative}"
        )
        assert sentence in markdown
        assert sentence in html
    # All signs are positive in one of 2^6 patterns.
    assert p_values == {"two_sided": (0.0, 2 / 64), "greater": (0.0, 1 / 64), "less": (1.0, 1.0)}
