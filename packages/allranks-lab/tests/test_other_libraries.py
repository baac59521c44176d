"""`allranks rehearse` of other libraries' scripts: what Accelerate and Lightning do not restore is named."""

import shutil
from pathlib import Path

import pytest

from allranks_command import allranks

SCRIPTS = Path(__file__).with_name("scripts")
JOB = """\
type: command
command: python {script} ${{{{outputs.checkpoints}}}}
code: code
environment: {{image: "python:3.12"}}
outputs: {{checkpoints: {{type: uri_folder, mode: rw_mount}}}}
resources: {{instance_count: 2}}
distribution: {{type: pytorch, process_count_per_instance: 1}}
"""
RESTORED = {"the weights", "the optimizer", "the learning rate"}


@pytest.mark.recipe
@pytest.mark.parametrize("script", ["accelerate_script.py", "lightning_script.py"])
def test_what_another_library_does_not_restore_is_named(script: str, tmp_path: Path) -> None:
    pytest.importorskip(script.partition("_")[0])
    shutil.copytree(SCRIPTS, tmp_path / "code")
    (tmp_path / "job.yml").write_text(JOB.format(script=script))
    ended = allranks("rehearse", "job.yml", "--evictions", 4, "--seed", 1, "--no-track", "--json", folder=tmp_path)
    assert ended.code == 1, ended.err
    assert ended.json["evictions"] == 4
    (training,) = ended.json["trainings"]
    assert (training["steps"], training["weights_equal"]) == (64, False)
    lost = [{text.partition(":")[0] for text in each["lost"]} for each in training["resumptions"] if each["resumed"]]
    assert any("the order of the data" in each for each in lost)
    assert not any(each & RESTORED for each in lost)
