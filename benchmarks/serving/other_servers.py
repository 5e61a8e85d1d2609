"""Runs MLServer and BentoML, each installed from the package index into a virtual environment of its own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import production

from benchmarks.corpora import path_of
from benchmarks.serving.bodies import CORPUS, Bodies
from benchmarks.serving.processes import ROOT, Target, server
from benchmarks.serving.trained import export_scorer
from benchmarks.serving.wrk import LoadError

PEERS = Path(__file__).with_name("peers")

INSTALL_SECONDS = 900

_JSON = {"Content-Type": "application/json"}


def install(name: str, cache: Path) -> Path:
    """Return the folder of the programs of a server; the first call installs it.

    Args:
        name: ``mlserver`` or ``bentoml``, the name of the file of its requirements.
        cache: folder of the environments.

    Raises:
        LoadError: the packages cannot be installed.
    """
    requirements = PEERS / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:8]
    folder = cache / f"{name}-{digest}"
    programs = folder / "bin"
    if (folder / "installed").exists():
        return programs
    print(f"installing {name}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "install"]
    # The pip of older versions of Python needs minutes to resolve these requirements.
    for words in (["--upgrade", "pip"], ["--requirement", str(requirements)]):
        try:
            completed = subprocess.run(
                [*pip, *words], check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise LoadError(f"{name} cannot be installed within {INSTALL_SECONDS} s") from error
        if completed.returncode:
            raise LoadError(f"{name} cannot be installed: {completed.stderr.strip()[-500:]}")
    (folder / "installed").touch()
    return programs


@contextmanager
def mlserver(
    cache: Path, folder: Path, artifact: Path, texts: Sequence[str], *, tuned: bool
) -> Iterator[tuple[dict[str, Target], list[int]]]:
    """Run MLServer around the plain scorer and, with its default settings, scikit-learn's pipeline.

    Args:
        cache: folder of the environments and of what is made once.
        folder: folder for the files of this run.
        artifact: the boosting model whose weights the plain scorer uses.
        texts: the texts of the requests.
        tuned: whether to run it without its pool of worker processes, metrics and debug output, which is its
            fastest way for small models, instead of with its default settings.

    Yields:
        targets by name, and the process ids.

    Raises:
        LoadError: MLServer cannot be installed or does not start.
    """
    programs = install("mlserver", cache)
    weights = _weights(cache, artifact)
    ports = [production.free_port() for _ in range(3)]
    configured = folder / ("mlserver-tuned" if tuned else "mlserver")
    settings = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    options = {"parallel_workers": 0, "debug": False, "metrics_endpoint": None} if tuned else {}
    _write(configured / "settings.json", {**settings, "host": "127.0.0.1", **options})
    models = {"plain": ("PlainScorer", weights)}
    if not tuned:
        models["sklearn"] = "SklearnPipeline", path_of(f"{CORPUS}.jsonl.gz")
    for name, (implementation, uri) in models.items():
        module = f"benchmarks.serving.peers.mlserver_runtime.{implementation}"
        described = {"name": name, "implementation": module, "parameters": {"uri": str(uri.resolve())}}
        _write(configured / name / "model-settings.json", described)
    bodies = folder / "mlserver.bodies"
    inputs = [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [text]} for text in texts]
    Bodies("application/json", [json.dumps({"inputs": [one]}).encode() for one in inputs]).write(bodies)
    url = f"http://127.0.0.1:{ports[0]}/v2"
    with server(
        [programs / "mlserver", "start", configured],
        f"{url}/health/ready",
        folder / f"{configured.name}.log",
        environment={"PYTHONPATH": str(ROOT)},
    ) as process:
        targets = {name: Target(f"{url}/models/{name}/infer", bodies, _JSON) for name in models}
        yield targets, [process.pid]


@contextmanager
def bentoml(
    cache: Path, folder: Path, artifact: Path, texts: Sequence[str]
) -> Iterator[tuple[dict[str, Target], list[int]]]:
    """Run BentoML with one worker around the plain scorer; see :func:`mlserver`."""
    programs = install("bentoml", cache)
    weights = _weights(cache, artifact)
    port = production.free_port()
    bodies = folder / "bentoml.bodies"
    Bodies("application/json", [json.dumps({"text": text}).encode() for text in texts]).write(bodies)
    url = f"http://127.0.0.1:{port}"
    service = "benchmarks.serving.peers.bentoml_service:Ranker"
    with server(
        [programs / "bentoml", "serve", service, "--host", "127.0.0.1", "--port", str(port)],
        f"{url}/readyz",
        folder / "bentoml.log",
        environment={
            "PYTHONPATH": str(ROOT),
            "SCORER_FILE": str(weights.resolve()),
            "BENTOML_HOME": str(folder / "bentoml"),
            "BENTOML_DO_NOT_TRACK": "true",
            "PATH": f"{programs}:/usr/bin:/bin",
        },
    ) as process:
        yield {"plain": Target(f"{url}/rank", bodies, _JSON)}, [process.pid]


def _weights(cache: Path, artifact: Path) -> Path:
    weights = cache / "scorer.npz"
    return weights if weights.exists() else export_scorer(artifact, weights)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
