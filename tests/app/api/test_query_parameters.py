"""Every operation rejects query parameters that it does not know or that are given twice."""

from __future__ import annotations

import re
from typing import Any

from contract import problem_of
from in_process_api import InProcessApi


def test_every_operation_rejects_unknown_and_repeated_query_parameters(service: InProcessApi) -> None:
    n_operations = n_parameters = 0
    for path, operations in service.app.openapi()["paths"].items():
        url = re.sub(r"\{\w+\}", "x", path)
        for method, operation in operations.items():
            n_operations += 1
            known = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
            # The operation must not get as far as its body.
            response = service.send(method.upper(), url, params={"no_such_parameter": "1"})
            problem = problem_of(response, 422, "invalid_request", pointer="/query/no_such_parameter")
            (error,) = problem["errors"]
            assert error["message"].startswith("is unknown; "), (method, path)
            assert all(name in error["message"] for name in known), (method, path)
            for name in known:
                n_parameters += 1
                response = service.send(method.upper(), url, params=[(name, "1"), (name, "1")])
                problem = problem_of(response, 422, "invalid_request", pointer=f"/query/{name}")
                assert "is given 2 times" in problem["detail"], (method, path, name)
    assert n_operations > 50
    assert n_parameters > 30


def test_the_error_names_the_parameter_that_was_probably_meant(service: InProcessApi) -> None:
    def error(query: str) -> dict[str, Any]:
        return problem_of(service.send("GET", f"/v1/models{query}"), 422, "invalid_request")

    assert error("?limits=3")["errors"] == [
        {"pointer": "/query/limits", "message": "is unknown; did you mean 'limit'?"}
    ]
    assert error("?page=2&Limit=1")["errors"] == [
        {"pointer": "/query/page", "message": "is unknown; the parameters here are cursor, limit, name"},
        {"pointer": "/query/Limit", "message": "is unknown; did you mean 'limit'?"},
    ]
    assert error("?a%7Eb/c")["errors"][0]["pointer"] == "/query/a~0b~1c"
    many = "&".join(f"p{n}=" for n in range(80))
    assert len(error(f"?{many}")["errors"]) == 50
    problem = problem_of(service.send("GET", "/health/live?verbose"), 422, "invalid_request")
    assert problem["errors"][0]["message"] == "is unknown; this operation has no query parameters"


def test_a_request_without_a_valid_key_learns_nothing_about_parameters(service: InProcessApi) -> None:
    headers = {"Authorization": "Bearer cov_wrong"}
    problem_of(service.send("GET", "/v1/models?page=2", headers=headers), 401, "unauthorized")


def test_an_empty_query_is_accepted(service: InProcessApi) -> None:
    assert service.send("GET", "/v1/models?").status_code == 200
