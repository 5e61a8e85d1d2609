"""Metrics of routers, feedback, versions, jobs and webhooks; dashboard and alerts ask for nothing else."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from in_process_api import InProcessApi
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app import metrics
from app.db import tables
from app.health.process_metrics import sum_of_processes
from app.inbound.monitor import Monitor
from app.jobs.run_counts import count_run
from app.maintenance.backup import back_up
from app.maintenance.retention import apply_retention
from app.metrics import DATABASE_CONNECTIONS, DECISIONS, count_decision
from app.server.process_name import siblings_of_same_name
from app.version import __version__
from workers.monitor import WorkerMonitor

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/covey.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text(encoding="utf-8"))
_OF_PROMQL = {"absent", "rate", "increase", "sum", "max", "min", "count", "by", "time"}
_OF_PROMQL |= {"histogram_quantile", "label_values"}


def samples(service: InProcessApi) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the samples of ``/metrics`` by their names."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(service.send("GET", "/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    assert not [name for name in found if name.endswith("_created")]
    return found


def value(service: InProcessApi, name: str, **labels: str) -> float:
    """Return the value of the sample with exactly these labels; 0 if there is none."""
    return sum(number for found, number in samples(service).get(name, ()) if found == labels)


def route(service: InProcessApi, text: str) -> Any:
    body = {"email": {"subject": "Hello", "text": text}}
    return service.call("POST", "/v1/routers/seen/message-parts", 200, json=body)


def queries() -> Iterator[tuple[str, str]]:
    """Yield the title of each panel, and the name of each alert, with its queries."""
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def samples_of_other_processes() -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the samples of a mail filter and of a worker."""
    worker = WorkerMonitor(os.getpid(), Mock(age=lambda: 0.0), Mock(unavailable_since=None))
    families = [*Monitor().registry.collect(), *worker.registry.collect()]
    return {sample.name: [(sample.labels, sample.value)] for family in families for sample in family.samples}


def test_what_a_service_does_is_seen_and_the_dashboard_and_the_alerts_find_all_of_it(
    service: InProcessApi,
) -> None:
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/seen", 200, json={"model": "m", "fallback": "desk"})
    hook = {"url": "https://hooks.invalid/", "events": ["job.ended"]}
    webhook = service.call("POST", "/v1/webhooks", 201, json=hook)
    service.call("POST", f"/v1/webhooks/{webhook['id']}/test", 202)
    labels = {"router": "seen", "model": "m", "version": "1", "disposition": "routed"}
    before = value(service, "covey_decisions_total", **labels)
    corrected = value(service, "covey_feedback_total", router="seen", outcome="corrected")

    decision = route(service, "the invoice is wrong, and the payment too")
    assert decision["disposition"] == "routed"
    assert value(service, "covey_decisions_total", **labels) == before + 1
    route(service, "the invoice is wrong, and the payment too")
    assert value(service, "covey_decisions_total", **labels) == before + 1, "a repetition is no new decision"

    predicted = [item["label"] for item in decision["departments"]]
    path = f"/v1/decisions/{decision['decision_id']}/feedback"
    service.call("POST", path, 200, json={"labels": predicted})
    assert value(service, "covey_feedback_total", router="seen", outcome="agreed") >= 1
    service.call("POST", path, 200, json={"labels": []})
    assert value(service, "covey_feedback_total", router="seen", outcome="corrected") == corrected + 1

    assert value(service, "covey_build_info", version=__version__, python=platform.python_version()) == 1
    with service.ctx.db.read() as session:
        job = session.scalars(select(tables.Job).where(tables.Job.kind == "train")).one()
    count_run(service.ctx.db, job)
    of_trainings = {"kind": "train", "state": "succeeded"}
    assert value(service, "covey_job_seconds_count", **of_trainings) == 1
    assert value(service, "covey_job_seconds_bucket", **of_trainings, le="30000.0") == 1
    assert value(service, "covey_job_seconds_sum", **of_trainings) > 0
    assert value(service, "covey_webhooks", state="enabled") == 1
    assert value(service, "covey_webhook_pending_deliveries") == 1
    assert value(service, "covey_model_load_seconds_count", outcome="loaded") >= 1

    metrics.count_feedback("seen", "agreed", 0.75)  # naive Bayes predicts no probability
    metrics.FALLBACKS.labels("seen").inc(0)
    found = {**samples_of_other_processes(), **samples(service)}
    for title, query in queries():
        assert not unknown_names(query, found), title


def test_every_counter_exists_before_the_first_event(service: InProcessApi) -> None:
    service.train(service.dataset())
    service.call("PUT", "/v1/routers/new", 200, json={"model": "m", "fallback": "desk"})
    found = samples(service)
    zeros: dict[str, dict[str, str]] = {
        "covey_requests_total": {"operation": "routers_route_message", "status": "500"},
        "covey_routing_fallbacks_total": {"router": "new"},
        "covey_shadow_decisions_total": {"router": "new", "agreement": "agreed"},
        "covey_feedback_total": {"router": "new", "outcome": "corrected"},
        "covey_decisions_total": {"router": "new", "model": "m", "version": "1", "disposition": "fallback"},
        "covey_kept_messages_total": {"outcome": "not_kept"},
        "covey_jobs": {"kind": "cell", "state": "failed"},
        "covey_job_seconds_count": {"kind": "cell", "state": "failed"},
        "covey_retention_deleted_total": {"what": "decisions"},
        "covey_reviews_waiting": {"router": "new"},
        "covey_oldest_review_seconds": {"router": "new"},
        "covey_last_retention_timestamp_seconds": {},
        "covey_last_backup_timestamp_seconds": {},
    }
    for name, labels in zeros.items():
        assert (labels, 0.0) in found.get(name, []), name


def test_process_storage_reviews_and_maintenance_are_seen(service: InProcessApi, tmp_path: Path) -> None:
    service.train(service.dataset())
    body = {"model": "m", "fallback": "desk", "review_sample": 1, "keep_messages": "all"}
    service.call("PUT", "/v1/routers/seen", 200, json=body)
    kept = value(service, "covey_kept_messages_total", outcome="kept")
    decision = route(service, "the invoice is wrong")
    assert value(service, "covey_kept_messages_total", outcome="kept") == kept + 1
    assert value(service, "covey_reviews_waiting", router="seen") == 1
    body = {"labels": [item["label"] for item in decision["departments"]]}
    service.call("POST", f"/v1/decisions/{decision['decision_id']}/feedback", 200, json=body)
    assert value(service, "covey_reviews_waiting", router="seen") == 0

    before = time.time()
    apply_retention(service.ctx)
    back_up(service.ctx.db, service.ctx.storage, tmp_path / "backup")
    assert value(service, "covey_last_retention_timestamp_seconds") > before - 1
    assert value(service, "covey_last_backup_timestamp_seconds") > before - 1

    assert value(service, "process_resident_memory_bytes") > 1e6
    assert value(service, "process_cpu_seconds_total") > 0
    assert value(service, "covey_storage_available") == 1
    assert value(service, "covey_storage_free_bytes") > 0
    with service.ctx.db.read() as session:
        session.execute(select(1))
        assert next(iter(DATABASE_CONNECTIONS.collect())).samples[0].value >= 1


def test_without_a_database_its_gauges_are_unknown(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OperationalError("", None, OSError())

    monkeypatch.setattr(service.ctx.db, "read", refuse)
    found = samples(service)
    assert found["covey_ready"] == [({}, 0.0)]
    assert not {"covey_queue_seconds", "covey_workers", "covey_jobs"} & set(found)


def test_metrics_of_several_processes_are_added() -> None:
    pid = os.getpid()
    (one,) = (f for f in sum_of_processes([pid]) if f.name == "process_open_fds")
    families = {family.name: family.samples[0].value for family in sum_of_processes([pid, os.getppid()])}
    assert families["process_open_fds"] > one.samples[0].value
    assert siblings_of_same_name().count(pid) == 1


def unknown_names(query: str, found: dict[str, list[tuple[dict[str, str], float]]]) -> set[str]:
    """Return the metrics and labels of a query that the samples do not have."""
    names = set(re.findall(r"\bcovey_\w+", query))
    assert names, query
    labels = {label for name in names for sample, _ in found.get(name, ()) for label in sample}
    wrong = {name for name in names if name not in found}
    without_strings = re.sub(r'"[^"]*"', '""', query)
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=(?!=))", without_strings))
    for group in re.findall(r"\bby\s*\(([^)]*)\)", without_strings):
        used |= {label.strip() for label in group.split(",")}
    used |= set(re.findall(r"label_values\(\w+, (\w+)\)", query))
    words = set(re.findall(r"[a-z_]{2,}", re.sub(r"\[[^]]*\]|\$\w+", "", without_strings)))
    return wrong | (used - labels) | (words - names - labels - _OF_PROMQL - {"le"} | (used & {"le"} - labels))


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("rate(covey_gone_total[5m])", {"covey_gone_total"}),
        ('sum by (departement) (covey_x{router="a"})', {"departement"}),
        ('covey_x{routr="a"}', {"routr"}),
        ('sum by (router) (covey_x{router=~"$router"})', set()),
        ("sumx(covey_x)", {"sumx"}),
    ],
)
def test_a_wrong_query_is_found(query: str, wrong: set[str]) -> None:
    assert unknown_names(query, {"covey_x": [({"router": "a"}, 1.0)]}) == wrong


def test_the_legends_of_the_dashboard_name_labels_that_the_query_keeps() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b[^)]*\)", target["expr"]), panel["title"]


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_ever_new_versions_create_a_limited_number_of_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_DECISION_COUNTERS", metrics._decision_counter.cache_info().currsize + 2)
    for version in range(1, 6):
        count_decision("many", "m", version, "routed")
    found = {
        sample.labels["version"]: sample.value
        for family in DECISIONS.collect()
        for sample in family.samples
        if sample.name == "covey_decisions_total" and sample.labels["router"] == "many"
    }
    assert found == {"1": 1, "2": 1, "other": 3}
    assert metrics._decision_counter.cache_info().maxsize is not None
    metrics._decision_counter.cache_clear()
