"""The Makefile installs what it is asked for, and nothing twice. Scripts that record calls replace its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PIP = """\
#!/bin/sh
echo "$@" >> calls
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    bin_ = tmp_path / ".venv/bin"
    bin_.mkdir(parents=True)
    for name in ("pip", "allranks"):
        (bin_ / name).write_text(PIP)
        (bin_ / name).chmod(0o755)
    return tmp_path


def calls(project: Path, *arguments: str) -> list[str]:
    """Return what `make demo` called."""
    recorded = project / "calls"
    recorded.unlink(missing_ok=True)
    environment = {"PATH": os.environ["PATH"]}
    subprocess.run(["make", "--silent", "demo", *arguments], cwd=project, env=environment, check=True, timeout=60)
    return recorded.read_text().splitlines()


RUN = "run pipelines/image_classification.py"
EDITABLE = "install --quiet --editable .[images]"


def test_another_torch_replaces_the_first_one(project: Path) -> None:
    first = calls(project)
    assert [first[0].startswith("install --quiet torch=="), *first[1:]] == [True, EDITABLE, RUN]
    assert calls(project) == [RUN], "nothing is installed twice"
    assert calls(project, "TORCH=torch") == ["install --quiet --force-reinstall torch", RUN]
    assert calls(project, "TORCH=torch") == [RUN]
