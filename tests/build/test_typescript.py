"""The TypeScript clients that hey-api and openapi-typescript generate type-check and work.

The drivers also contain lines that must not compile (``@ts-expect-error``).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import client_drivers
import generate_clients
import pytest
from stack import Stack

pytestmark = [pytest.mark.build, pytest.mark.system]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drivers with the generated clients, compiled under ``strict``."""
    folder = tmp_path_factory.mktemp("typescript")
    client_drivers.generate("typescript", folder / "generated")
    shutil.copytree(client_drivers.DRIVERS / "typescript", folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(generate_clients.TYPESCRIPT / "node_modules")
    client_drivers.run(folder / "node_modules" / ".bin" / "tsc", "--project", ".", cwd=folder)
    return folder


@pytest.mark.parametrize("client", ["hey-api", "openapi-fetch"])
def test_the_client_works_from_the_upload_to_the_correction(
    client: str, project: Path, stack: Stack, tmp_path: Path
) -> None:
    inputs = client_drivers.write_inputs(tmp_path)
    output = client_drivers.run("node", f"compiled/drive-{client}.js", stack.url, *inputs, cwd=project)
    assert output.strip() == client_drivers.WORKS
