"""Inputs that are mounted are read-only, where instances can mount, and a write into one is explained."""

from pathlib import Path

import pytest

from allranks.local import requirements
from allranks.local.attempt import stage
from allranks.local.engine import run
from allranks.local.instances.supervisor import INSTANCE_KINDS
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input
from allranks.plan.ports import Path as DataPath
from allranks.plan.values import ResolvedInput
from allranks.workspace import Workspace


@pytest.mark.parametrize("command", ["echo x > ${{inputs.data}}/y", "cd ${{inputs.data}} && touch y"])
def test_a_write_into_an_input(kind: str, tmp_path: Path, command: str) -> None:
    """It names the input where instances can mount; elsewhere one note says that nothing prevents the write."""
    (tmp_path / "data").mkdir()
    inputs = tuple(
        Input(name, "uri_folder", DataPath(str(tmp_path / "data")), mode)
        for name, mode in (("data", "ro_mount"), ("own", "download"))
    )
    steps = (Step("first", command, inputs=inputs), Step("second", "true", inputs=inputs))
    record = run(Plan("plan", Graph(steps)), Workspace(tmp_path), Options(instances=kind, track=False))
    notes = [note for note in record.notes if "inputs are not protected" in note]
    verdict = record.step("first").verdict
    if kind == "loopback":
        assert (verdict, len(notes)) == (None, 1)
    else:
        assert verdict is not None
        assert (verdict.code, notes) == ("read-only-input", [])
        assert verdict.advice.startswith("input data is read-only, as on Azure ML; declare an output")


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("OSError: [Errno 30] Read-only file system: '/w/inputs/data/x'", ["data"]),
        ("/bin/bash: line 1: /w/inputs/data-2/x.csv: Read-only file system", ["data-2"]),
        ("mkdir: cannot create directory '/w/inputs/copy/x': Read-only file system", []),
        ("/bin/bash: line 1: x: Read-only file system", ["data", "data-2"]),
        ("touch: cannot touch '/usr/x': Read-only file system", []),
    ],
)
def test_the_input_into_which_a_program_wrote(said: str, names: list[str]) -> None:
    modes = {"data": "ro_mount", "data-2": "mount", "copy": "download", "lr": ""}
    assert stage.read_only_inputs([ResolvedInput(name, "", mode, "/x") for name, mode in modes.items()], said) == names


@pytest.mark.parametrize(("mode", "kind", "count"), [("ro_mount", "loopback", 1), ("ro_mount", "rack", 0),
                                                     ("download", "loopback", 0)])  # fmt: skip
def test_inputs_that_are_not_protected(mode: str, kind: str, count: int) -> None:
    inputs = (Input("data", "uri_folder", DataPath("/x"), mode),)
    plan = Plan("plan", Graph((Step("a", "true", inputs=inputs), Step("b", "true", inputs=inputs))))
    assert len(requirements.unprotected_inputs(plan, INSTANCE_KINDS[kind])) == count
