"""The checks as a step of their own, run by the engine as a user runs a component."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from allranks.errors import InputError
from allranks_command import forked

COMPONENT = Path(__file__).parents[2] / "components" / "diagnosis/preflight" / "component.yaml"


def pipeline(folder: Path, inputs: str) -> Path:
    text = f"""
type: pipeline
jobs:
  preflight:
    type: command
    component: {COMPONENT}
    inputs: {inputs}
    resources: {{instance_count: 2}}
    distribution: {{type: pytorch, process_count_per_instance: 1}}
    outputs:
      report: {{type: uri_folder, path: ./report}}
"""
    path = folder / "pipeline.yml"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_healthy_cluster(tmp_path: Path) -> None:
    ended = forked("run", pipeline(tmp_path, "{}"), "--no-track", folder=tmp_path)
    assert ended.code == 0, ended
    report = json.loads((tmp_path / "report" / "preflight.json").read_text())
    assert (report["world_size"], report["instance_count"]) == (2, 2)
    assert {finding["state"] for finding in report["findings"]} == {"ok"}
    checks = [
        "world size",
        "names",
        "clocks",
        "/dev/shm",
        "GPUs",
        "InfiniBand",
        "links",
        "topology",
        "versions",
        "network",
        "all-reduce",
    ]
    assert [finding["check"] for finding in report["findings"]] == checks


@pytest.mark.slow
def test_a_size_whose_infiniband_is_not_there(tmp_path: Path) -> None:
    """This machine has none: what ND96asr_v4 promises is missed on both instances, and the report says so."""
    ended = forked("run", pipeline(tmp_path, "{size: nd96asr_v4}"), "--no-track", folder=tmp_path)
    assert ended.code == 1
    assert "preflight InfiniBand, instance 0, rank 0" in ended.out + ended.err
    report = json.loads((tmp_path / "report" / "preflight.json").read_text())
    missed = [finding for finding in report["findings"] if finding["state"] == "FAILED"]
    assert [(finding["instance"], finding["rank"]) for finding in missed] == [(0, 0), (1, 1)]
    assert {finding["expected"] for finding in missed} == {"8, as Standard_ND96asr_v4 has"}


def test_a_size_that_is_not_known(
    tmp_path: Path, code: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    words = ["check.py", "--spec", str(COMPONENT), "--size", "ND96asr_v5", "--report", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(InputError, match="no size 'ND96asr_v5' is known"):
        code("preflight", "check").main()
