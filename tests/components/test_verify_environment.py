"""verify_environment, run by the engine as a user runs a component: what is true here, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from allranks_command import allranks

# Each is a run of the engine.
pytestmark = pytest.mark.slow

COMPONENT = Path(__file__).parents[2] / "components" / "diagnosis/verify_environment" / "component.yaml"
EXPECTED = """
every:
  python: {version: ">=3.10,<3.14"}
  openmpi: {version: "%s", with: [ucx]}
  packages: {mpi4py: "4.1.2"}
  ranks: {count: 2, over: [mpi4py]}
doca:
  commands: [nowhere]
"""


def verified(folder: Path, openmpi: str) -> tuple[int, dict[str, Any]]:
    """How the run ended, and the report that its step wrote: findings by what they are about."""
    (folder / "expect.yaml").write_text(EXPECTED % openmpi)
    (folder / "pipeline.yml").write_text(f"""
type: pipeline
jobs:
  verify:
    type: command
    component: {COMPONENT}
    inputs: {{expectations: {{type: uri_file, path: ./expect.yaml}}}}
    outputs:
      report: {{type: uri_folder, path: ./report}}
""")
    ended = allranks("run", folder / "pipeline.yml", "--no-track", folder=folder)
    report = json.loads((folder / "report" / "verification.json").read_text())
    return ended.code, {finding["what"]: finding for finding in report}


def test_what_is_true(tmp_path: Path) -> None:
    code, findings = verified(tmp_path, "4.1.8")
    assert code == 0
    assert [finding["ok"] for finding in findings.values()] == [True] * 5
    assert "2 ranks under mpirun, all-reduce by mpi4py" in findings


def test_what_is_not(tmp_path: Path) -> None:
    code, findings = verified(tmp_path, "5.0.6")
    assert code == 1
    assert {what for what, finding in findings.items() if not finding["ok"]} == {"openmpi"}
    assert (findings["openmpi"]["expected"], findings["openmpi"]["found"]) == ("5.0.6", "4.1.8")
