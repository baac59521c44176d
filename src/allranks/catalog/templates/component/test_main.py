"""Run the component on this machine as `allranks run` does. Start it with `pytest`."""

from pathlib import Path

import allranks

SPEC = Path(__file__).resolve().parents[1] / "components/new_component/component.yaml"


def test_the_ranks_write_every_number_once(tmp_path: Path) -> None:
    run = allranks.run(SPEC, {"count": 5}, folder=tmp_path).wait()
    files = Path(run.outputs["squares"]).glob("*.csv")
    lines = sorted(line for file in files for line in file.read_text().splitlines())
    assert lines == ["0,0", "1,1", "2,4", "3,9", "4,16"]
