"""Dangling links, FIFOs, loops of links, and unreadable files among what a step reads and writes: at worst that step
fails, with its reason."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.history.records import RunRecord, Status
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

ODD = "ln -s nowhere dangling; ln -s loop loop; ln -s .. up; mkfifo fifo; mkdir empty; echo 1 > x"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with one of each."""
    folder = tmp_path / "odd"
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "x").write_text("1\n")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "deep" / "up").symlink_to("..")
    os.mkfifo(folder / "deep" / "fifo")
    return folder


def _read(
    data: Path,
    mode: str,
    *,
    name: str = "read",
    type_: str = "uri_folder",
    command: str = "cat ${{inputs.data}}/x",
) -> Step:
    return Step(name, command, inputs=(Input("data", type_, DataPath(str(data)), mode),))


def test_an_input_with_all_of_them(odd: Path, kind: str, run_steps) -> None:
    reads = [_read(odd, mode, name=mode) for mode in ("ro_mount", "rw_mount", "download", "direct")]
    record = run_steps(*reads, instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    assert {step.reused_from for step in run_steps(*reads, instances=kind).steps} == {record.id}


def test_a_download_has_the_same_links_and_says_what_it_leaves_out(odd: Path, run_steps) -> None:
    look = "cd ${{inputs.data}}; readlink dangling loop deep/up; cat deep/up/x; ls deep"
    record = run_steps(_read(odd, "download", command=look))
    assert Path(record.step("read").ranks[0].log).read_text().split() == ["nowhere", "loop", "..", "1", "empty", "up"]
    assert record.step("read").notes == ["input data: deep/fifo is a FIFO, and was not copied"]


@pytest.mark.parametrize("mode", ["rw_mount", "upload"])
def test_an_output_with_all_of_them(mode: str, kind: str, run_steps) -> None:
    write = Step("write", f"cd ${{{{outputs.out}}}}; {ODD}", outputs=(Output("out", "uri_folder", mode),))
    record = run_steps(write, instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    assert record.step("write").notes == (
        ["output out: fifo is a FIFO, and was not copied"] if mode == "upload" else []
    )
    assert run_steps(write, instances=kind).step("write").reused_from == record.id


@pytest.mark.parametrize("mode", ["rw_mount", "upload"])
def test_a_fifo_where_an_output_goes_is_not_waited_for(mode: str, run_steps, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    command = f"mkfifo {tmp_path}/here 2>&-; rm -rf ${{{{outputs.out}}}}; ln -s {tmp_path}/fifo ${{{{outputs.out}}}}"
    record = run_steps(Step("write", command, outputs=(Output("out", "uri_folder", mode),)))
    assert record.status is Status.FAILED
    assert "FIFO" in record.verdict.reason


def _next_runs(record: RunRecord) -> bool:
    return record.step("other").status is Status.COMPLETED


BECOMES = ("mkfifo", "ln -s nowhere", "ln -s data", ":")
"""Commands that make a FIFO, a dangling link, a loop, or nothing."""


def test_an_input_that_becomes_one_of_them_fails_its_step_alone(run_steps, kind: str, workspace: Workspace) -> None:
    """While it is read for its digest, and while it is copied."""
    steps: list[Step] = [Step("other", "true")]
    for number, command in enumerate(BECOMES):
        for mode, deterministic in (("ro_mount", True), ("download", False)):
            # Of /tmp a machine of the rack sees no more than the workspace.
            data = workspace.root / f"{number}-{mode}" / "data"
            data.parent.mkdir(parents=True)
            data.touch()
            spoil = Step(f"spoil{number}-{mode}", f"rm {data}; {command} {data}")
            read = _read(
                data, mode, name=f"read{number}-{mode}", type_="custom_model", command="test -f ${{inputs.data}}"
            )
            steps += [spoil, replace(read, after=(spoil.name,), deterministic=deterministic)]
    record = run_steps(plan=Plan("p", Graph(tuple(steps))), instances=kind)
    assert _next_runs(record)
    for step in record.steps:
        if step.name.startswith("read"):
            assert step.status is Status.FAILED
            assert step.verdict is not None
            assert f"{step.name.removeprefix('read')}/data" in step.verdict.reason
            assert step.ended is not None
        else:
            assert step.status is Status.COMPLETED


def test_an_output_that_is_gone_fails_its_step_alone(run_steps) -> None:
    steps = (
        Step("write", "rm -r ${{outputs.out}}", outputs=(Output("out", "uri_folder", "rw_mount"),)),
        Step("other", "true"),
    )
    record = run_steps(plan=Plan("p", Graph(steps)))
    assert record.step("write").status is Status.FAILED
    assert "No such file" in record.verdict.reason
    assert _next_runs(record)
