"""Lists are searched by name and filtered by state, over HTTP and on pages."""

from __future__ import annotations

import in_process
import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi

LISTS = {
    "datasets": ("datasets", "ready"),
    "training-jobs": ("training", "succeeded"),
    "experiments": ("experiments", "succeeded"),
    "models": ("models", None),
    "routers": ("routers", None),
}
"""For each list of the API, its page and the state of all its items."""


@pytest.fixture(scope="module")
def reader(api: InProcessApi) -> Visitor:
    """A visitor of a service with two items in each list."""
    for name in ("Sales_mail", "support"):
        dataset = api.dataset()
        api.call("PATCH", f"/v1/datasets/{dataset}", 200, json={"name": name})
        api.train(dataset, name)
        configurations = [{"learner": {"algorithm": "naive_bayes"}}]
        body = {"dataset_id": dataset, "name": name, "configurations": configurations}
        api.call("POST", "/v1/experiments", 202, json={**body, "split": {"kind": "folds", "folds": 2}})
        while in_process.work(api.ctx):
            pass
        api.call("PUT", f"/v1/routers/{name}", 200, json={"model": name, "fallback": "front"})
    return visitor(api, "read")


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_the_items_that_match(api: InProcessApi, reader: Visitor, path: str) -> None:
    def names(query: str) -> list[str]:
        items = api.call("GET", f"/v1/{path}?{query}", 200)["items"]
        return sorted(item["model" if path == "training-jobs" else "name"] for item in items)

    assert names("") == ["Sales_mail", "support"]
    assert names("name=SALES") == names("name=s_m") == ["Sales_mail"]
    assert names("name=%25") == [], "a percent sign is no wildcard"
    page, state = LISTS[path]
    found = reader.see(f"/console/{page}?name=sales&state=")
    assert ">Sales_mail<" in found
    assert ">support<" not in found
    assert 'value="sales"' in found
    assert "Nothing matches." in reader.see(f"/console/{page}?name=nowhere")
    if state is not None:
        other = "failed"
        assert names(f"state={state}&name=supp") == ["support"]
        assert names(f"state={other}") == []
        api.call("GET", f"/v1/{path}?state=unknown", 422)
        assert f'value="{state}" selected' in reader.see(f"/console/{page}?state={state}")
        assert "Nothing matches." in reader.see(f"/console/{page}?state={other}")


def test_the_next_page_of_a_search_has_its_conditions(reader: Visitor) -> None:
    page = reader.see("/console/models?name=S&limit=1")
    assert 'href="/console/models?name=S&amp;state=&amp;cursor=' in page
