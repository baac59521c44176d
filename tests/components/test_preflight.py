"""The checks as a step of their own, run by the engine as a user runs a component."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from allranks.errors import InputError
from allranks_command import forked

COMPONENT = Path(__file__).parents[2] / "components" / "diagnosis/preflight" / "component.yaml"


@pytest.mark.recipe
def test_a_healthy_cluster_and_a_size_whose_infiniband_is_not_there(tmp_path: Path) -> None:
    """This machine has none: what ND96asr_v4 promises is missed on both instances, and the report says so."""
    jobs = {
        name: {
            "type": "command",
            "component": str(COMPONENT),
            "inputs": inputs,
            "resources": {"instance_count": 2},
            "distribution": {"type": "pytorch", "process_count_per_instance": 1},
            "outputs": {"report": {"type": "uri_folder", "path": f"./{name}"}},
        }
        for name, inputs in {"healthy": {}, "missing": {"size": "nd96asr_v4"}}.items()
    }
    (tmp_path / "pipeline.yml").write_text(json.dumps({"type": "pipeline", "jobs": jobs}))
    ended = forked("run", "pipeline.yml", "--no-track", folder=tmp_path)
    assert ended.code == 1, ended
    assert "preflight InfiniBand, instance 0, rank 0" in ended.out + ended.err
    healthy, missing = (json.loads((tmp_path / name / "preflight.json").read_text()) for name in jobs)
    assert (healthy["world_size"], healthy["instance_count"]) == (2, 2)
    assert {finding["state"] for finding in healthy["findings"]} == {"ok"}
    assert ", ".join(finding["check"] for finding in healthy["findings"]) == (
        "world size, names, clocks, /dev/shm, GPUs, InfiniBand, links, topology, versions, network, all-reduce"
    )
    missed = [finding for finding in missing["findings"] if finding["state"] == "FAILED"]
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
