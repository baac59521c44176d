"""verify_environment, run by the engine as a user runs a component: what is true here, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from allranks_command import forked

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


@pytest.mark.slow
def test_what_is_true_and_what_is_not(tmp_path: Path) -> None:
    jobs: dict[str, Any] = {}
    for name, openmpi in (("well", "4.1.8"), ("badly", "5.0.6")):
        (tmp_path / f"{name}.yaml").write_text(EXPECTED % openmpi)
        jobs[name] = {
            "type": "command",
            "component": str(COMPONENT),
            "inputs": {"expectations": {"type": "uri_file", "path": f"./{name}.yaml"}},
            "outputs": {"report": {"type": "uri_folder", "path": f"./{name}"}},
        }
    (tmp_path / "pipeline.yml").write_text(json.dumps({"type": "pipeline", "jobs": jobs}))
    ended = forked("run", "pipeline.yml", "--no-track", "--json", folder=tmp_path)
    assert ended.code == 1, ended.err
    assert {step["name"]: step["status"] for step in ended.json["steps"]} == {"well": "Completed", "badly": "Failed"}
    well, badly = (
        {finding["what"]: finding for finding in json.loads((tmp_path / name / "verification.json").read_text())}
        for name in jobs
    )
    assert [finding["ok"] for finding in well.values()] == [True] * 5
    assert "2 ranks under mpirun, all-reduce by mpi4py" in well
    assert {what for what, finding in badly.items() if not finding["ok"]} == {"openmpi"}
    assert (badly["openmpi"]["expected"], badly["openmpi"]["found"]) == ("5.0.6", "4.1.8")
