"""A step of a run in Azure ML on this machine, with the outputs of the steps before it."""

from __future__ import annotations

import shutil

import pytest
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure

__all__ = ["command", "project", "quick"]


def test_a_step_gets_the_outputs_of_the_steps_before(
    azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.executes = True
    assert command("submit", "pipeline.yaml").code == 0
    name = only_run(azure).name
    shutil.rmtree("prepare")  # only what was stored is needed
    done = command("replay", name, "train")
    assert done.code == 0, done.err
    assert sorted(done.out.splitlines()) == sorted(
        line for rank in range(4) for line in (f"train:{rank} | prepared", f"train:{rank} | rank {rank}")
    )
    assert command("runs", "--json").out.count('"id"') == 1
    assert "there is no such step" in command("replay", name, "nope").err
