"""The manifests in ``deploy/kubernetes`` are valid and name paths, ports, settings and metrics that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.main import get_command

from app.cli.main import cli
from app.health.database_metrics import STATES
from app.health.monitor import application
from app.main import create_app
from app.settings import Settings

FOLDER = Path(__file__).parents[1] / "deploy/kubernetes"
SCHEMAS = "1.34"
"""Version of Kubernetes that validates the manifests."""

Manifest = dict[str, Any]


def manifests(folder: Path) -> Iterator[Manifest]:
    """Yield what a folder with a kustomization consists of."""
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from manifests(path)
        else:
            yield from yaml.safe_load_all(path.read_text())


BASE, MIGRATION = [*manifests(FOLDER)], [*manifests(FOLDER / "migration")]
ALL = {f"{one['kind']}-{one['metadata']['name']}": one for one in [*BASE, *MIGRATION]}
PODS = {name: one["spec"]["template"] for name, one in ALL.items() if name.startswith(("Deployment", "Job"))}
CONTAINERS = {name: pod["spec"]["containers"][0] for name, pod in PODS.items()}


@pytest.mark.parametrize("name", ALL)
def test_the_schemas_of_kubernetes_accept_a_manifest(name: str) -> None:
    kubernetes_validate.validate(ALL[name], SCHEMAS, strict=True)
    assert ALL[name]["kind"] == "Namespace" or ALL[name]["metadata"]["namespace"] == "covey"


def test_every_file_of_the_folder_is_a_part_of_it() -> None:
    files = {path.name for path in FOLDER.rglob("*.yaml")} - {"kustomization.yaml", "adapter-values.yaml"}
    assert files == {"settings.yaml", "api.yaml", "worker.yaml", "ingress.yaml", "migrate.yaml"}
    images = [
        yaml.safe_load((FOLDER / part / "kustomization.yaml").read_text())["images"]
        for part in (".", "migration")
    ]
    assert images[0] == images[1]


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_rights_and_limits_of_memory(name: str) -> None:
    pod, container = PODS[name]["spec"], CONTAINERS[name]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    user = re.search(r"^USER (\d+)$", (FOLDER.parents[1] / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    assert str(pod["securityContext"]["runAsUser"]) == user[1]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }


@pytest.mark.parametrize("name", PODS)
def test_a_container_runs_a_command_with_settings_that_exist(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, *options = CONTAINERS[name]["args"]
    commands = getattr(get_command(cli), "commands")  # noqa: B009 - the return type does not declare that this is a group
    known = {option for parameter in commands[command].params for option in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known
    variables = {**ALL["ConfigMap-covey-settings"]["data"]}
    variables |= {one["name"]: one["value"] for one in CONTAINERS[name].get("env", ())}
    assert {variable.removeprefix("COVEY_").lower() for variable in variables} <= set(Settings.model_fields)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    settings = Settings()
    sources = [source for one in CONTAINERS[name]["envFrom"] for source in one.values()]
    assert sources == [{"name": "covey-settings"}, {"name": "covey"}]
    ports = {port["containerPort"] for port in CONTAINERS[name].get("ports", ())}
    if command == "api":
        assert ports == {int(options[options.index("--port") + 1])}
        assert PODS[name]["spec"]["terminationGracePeriodSeconds"] > settings.drain_seconds + 20
    if command == "worker":
        assert ports == {int(settings.worker_metrics.rpartition(":")[2])}


def test_the_paths_of_probes_exist() -> None:
    paths = {getattr(route, "path", "") for route in create_app(Settings()).router.routes}
    for container in CONTAINERS.values():
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe not in container:
                continue
            request = container[probe]["httpGet"]
            assert request["port"] in [port["name"] for port in container["ports"]]
            if container["name"] == "api":
                assert request["path"] in paths
            else:
                assert _status_of_monitor(request["path"]) == "200 OK"


def _status_of_monitor(path: str) -> str:
    statuses: list[str] = []
    respond = application(None, dict)  # type: ignore[arg-type]
    [*respond({"PATH_INFO": path}, lambda status, _headers: statuses.append(status))]  # type: ignore[arg-type]
    return statuses[0]


def test_the_ingress_has_all_paths_that_need_a_key() -> None:
    routes = {getattr(route, "path", "") for route in create_app(Settings()).router.routes}
    first = {f"/{route.split('/')[1]}" for route in routes}
    rule = ALL["Ingress-covey"]["spec"]["rules"][0]
    paths = {one["path"]: one["backend"]["service"] for one in rule["http"]["paths"]}
    assert set(paths) == first - {"/health", "/metrics"}
    service = ALL["Service-covey-api"]
    for backend in paths.values():
        assert backend["name"] == service["metadata"]["name"]
        assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]


def test_selectors_find_the_pods() -> None:
    api, worker = (PODS[f"Deployment-covey-{name}"]["metadata"]["labels"] for name in ("api", "worker"))
    assert ALL["Service-covey-api"]["spec"]["selector"] == api
    for labels, name in ((api, "api"), (worker, "worker")):
        assert ALL[f"Deployment-covey-{name}"]["spec"]["selector"]["matchLabels"] == labels
        assert ALL[f"PodDisruptionBudget-covey-{name}"]["spec"]["selector"]["matchLabels"] == labels
    # `kubectl apply -l` of the instructions leaves out the API.
    assert api["app.kubernetes.io/component"] == "api"


def test_the_number_of_workers_follows_a_metric_that_exists() -> None:
    scaler = ALL["HorizontalPodAutoscaler-covey-worker"]["spec"]
    assert ALL[f"Deployment-{scaler['scaleTargetRef']['name']}"]["kind"] == scaler["scaleTargetRef"]["kind"]
    (metric,) = scaler["metrics"]
    (states,) = metric["external"]["metric"]["selector"]["matchExpressions"]
    assert states["key"] == "state"
    assert set(states["values"]) <= set(STATES)
    (rule,) = yaml.safe_load((FOLDER / "adapter-values.yaml").read_text())["rules"]["external"]
    assert metric["external"]["metric"]["name"] == rule["seriesQuery"] == "covey_jobs"
    concurrency = ALL["ConfigMap-covey-settings"]["data"]["COVEY_WORKER_CONCURRENCY"]
    assert metric["external"]["target"]["averageValue"] == concurrency
