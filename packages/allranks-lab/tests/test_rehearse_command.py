"""`allranks rehearse`: one training that restores everything, and one that restores its weights only."""

from pathlib import Path

import pytest

from allranks_command import allranks, called

JOB = """\
type: pipeline
jobs:
  whole: &step
    type: command
    command: python train.py ${{outputs.checkpoints}} model optimizer random
    code: code
    environment: {image: "python:3.12"}
    outputs: {checkpoints: {type: uri_folder, mode: rw_mount}}
    distribution: {type: pytorch, process_count_per_instance: 1}
  weights:
    <<: *step
    command: python train.py ${{outputs.checkpoints}} model
"""
TRAIN = """\
import os, sys
import torch
from torch.utils.data import DataLoader, TensorDataset

file, saved = sys.argv[1] + "/checkpoint.pt", sys.argv[2:]
torch.manual_seed(0)
data = torch.randn(48, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.2), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
epoch = 0
if os.path.exists(file):
    state = torch.load(file)
    model.load_state_dict(state["model"])
    if "optimizer" in saved:
        optimizer.load_state_dict(state["optimizer"])
    if "random" in saved:
        torch.set_rng_state(state["random"])
    epoch = state["epoch"]
for epoch in range(epoch, 8):
    for (batch,) in DataLoader(TensorDataset(data), batch_size=16, shuffle=True):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state()}
    torch.save({**parts, "epoch": epoch + 1}, file + ".new")
    os.replace(file + ".new", file)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text(TRAIN)
    (tmp_path / "job.yml").write_text(JOB)
    return tmp_path


@pytest.mark.recipe
def test_what_is_lost_is_named(project: Path) -> None:
    ended = allranks("rehearse", "job.yml", "--evictions", 2, "--seed", 3, "--no-track", "--json", folder=project)
    assert ended.code == 1, ended.err
    found = ended.json
    assert (found["evictions"], found["status"]) == (2, "Completed")
    whole, weights = found["trainings"]
    assert (whole["steps"], whole["weights_equal"], whole["repeated"], whole["missing"]) == (24, True, 0, 0)
    assert whole["largest_difference"] == 0
    assert weights["weights_equal"] is False
    lost = {text.partition(":")[0] for each in weights["resumptions"] if each["resumed"] for text in each["lost"]}
    assert lost >= {"the optimizer", "the random state of torch"}
    assert all(each["seconds"] > 0 for each in (*whole["resumptions"], *weights["resumptions"]))
    assert [output["differs"] == "" for output in found["outputs"]] == [True, False]
    page = Path(found["page"]).read_text()
    assert "without evictions" in page
    assert "the optimizer: its state, such as moments, is empty" in page


WRONG = {
    "no checkpoints": ("print(1)", (), "no step has checkpoints among its inputs, outputs, command and code"),
    "a fault": (TRAIN, ("--fault", "kill:rank=0,step=1"), "--fault cannot be given"),
    "elastic": (TRAIN, ("--elastic",), "no step sets ALLRANKS_ELASTIC_INSTANCES"),
    "new processes": (TRAIN, ("--cold",), "--cold cannot be given"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "options", "expected"), WRONG.values(), ids=WRONG)
def test_nothing_runs(project: Path, script: str, options: tuple[str, ...], expected: str) -> None:
    (project / "code/train.py").write_text(script)
    (project / "job.yml").write_text(JOB if options else JOB.replace("checkpoints", "out").replace("model", ""))
    ended = called("rehearse", "job.yml", *options, folder=project)
    assert ended.code == 2
    assert expected in ended.err
    assert not (project / ".allranks/runs").exists() or not list((project / ".allranks/runs").iterdir())


@pytest.mark.slow
def test_a_pipeline_without_a_training(project: Path) -> None:
    (project / "code/train.py").write_text("checkpoint = 1")
    ended = allranks("rehearse", "job.yml", "--evictions", 1, "--no-track", folder=project)
    assert ended.code == 2
    assert "no step has made a training step" in ended.err
