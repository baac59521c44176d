"""`allranks cancel` while another process executes the run: the run, or parts of it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bounded
from allranks.contract.pytorch import PyTorch
from allranks.history import locks, stored
from allranks.history.records import RunRecord, Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.graph import Graph, Node, Pipeline, Plan, Step
from allranks.plan.ports import Input
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace
from allranks_command import PATIENCE, Ended, Fifo, called

ENGINE = """
import sys
from pathlib import Path
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import codec
from allranks.workspace import Workspace
plan = codec.loads(sys.argv[1])
options = Options(instances="loopback", track=False, slots=int(sys.argv[3]), grace=1000)
run(plan, Workspace(Path(sys.argv[2])), options)
"""

Engine = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    with Fifo(tmp_path / ".allranks" / "fifo") as fifo:
        yield fifo


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Executes nodes in a process of its own, in the workspace of tmp_path."""
    with contextlib.ExitStack() as stack:

        def start(*nodes: Node, slots: int = 8) -> subprocess.Popen[bytes]:
            plan = codec.dumps(Plan("p", Graph(nodes)))
            words = [sys.executable, "-c", ENGINE, plan, str(tmp_path / ".allranks"), str(slots)]
            process = stack.enter_context(bounded.Popen(words))
            stack.callback(process.kill)
            return process

        yield start


def wait_for(fifo: Fifo, count: int) -> None:
    told = b""
    while told.count(b"up\n") < count:
        told += fifo.read()


def record_of(folder: Path) -> RunRecord:
    return stored.run(Workspace(folder / ".allranks"), "latest")


def cancel(folder: Path, *arguments: str) -> Ended:
    return called("cancel", "latest", *arguments, folder=folder)


def until_told(fifo: Fifo, trap: str = "") -> str:
    """A command that tells that it is up, and goes on until it is ended."""
    return f"exec 3> {fifo.path}; {trap} echo up >&3; while :; do sleep 0.05; done"


def test_a_run_ends_in_good_order(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    train = Step(
        "train", until_told(fifo, "trap 'echo saved; exit 1' TERM;"), distribution=PyTorch(2), instance_count=2
    )
    process = engine(train, Step("evaluate", "true", after=("train",)))
    wait_for(fifo, 4)
    done = cancel(tmp_path)
    assert (done.code, done.err) == (0, "")
    record = record_of(tmp_path)
    assert done.out == f"run {record.id} is Canceled; resume it: allranks resume {record.id}\n"
    assert process.wait(PATIENCE) == 0
    assert fifo.read() == b""
    assert [step.status for step in record.steps] == [Status.CANCELED, Status.NOT_STARTED]
    assert [Path(rank.log).read_text().splitlines()[-1] for rank in record.steps[0].ranks] == ["saved"] * 4


def test_now_kills_ranks_that_do_not_listen(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    engine(Step("train", until_told(fifo, "trap '' TERM;"), distribution=PyTorch(2)))
    wait_for(fifo, 2)
    done = cancel(tmp_path, "--now")
    assert (done.code, done.err) == (0, "")
    assert fifo.read() == b""
    assert [rank.signal for rank in record_of(tmp_path).step("train").ranks] == ["SIGKILL"] * 2


def test_a_step_ends_and_the_rest_goes_on(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    go_on = tmp_path / ".allranks" / "go-on"
    waits = f"exec 3> {fifo.path}; echo up >&3; while ! [ -e {go_on} ]; do sleep 0.05; done"
    engine(Step("a", until_told(fifo)), Step("b", waits), Step("c", "true", after=("a",)))
    wait_for(fifo, 2)
    unknown = cancel(tmp_path, "aa")
    assert (unknown.code, unknown.out, "did you mean a?" in unknown.err) == (2, "", True)
    done = cancel(tmp_path, "a")
    assert (done.code, done.out, done.err) == (0, "a is Canceled\n", "")
    again = cancel(tmp_path, "a")
    assert (again.code, again.out) == (2, "")
    assert "step a" in again.err
    assert "it is Canceled" in again.err
    go_on.touch()
    record = wait_until_over(tmp_path)
    assert record.status is Status.CANCELED
    assert [step.status for step in record.steps] == [Status.CANCELED, Status.COMPLETED, Status.NOT_STARTED]


def wait_until_over(folder: Path) -> RunRecord:
    record = record_of(folder)
    assert locks.wait(Workspace(folder / ".allranks").run_folder(record.id), PATIENCE)
    return record_of(folder)


def test_a_group_ends_with_all_that_it_holds(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    inner = Graph((Step("prepare", until_told(fifo, "trap '' TERM;")), Step("train", "true", after=("prepare",))))
    engine(Pipeline("tune", inner), Step("other", "true"))
    wait_for(fifo, 1)
    done = cancel(tmp_path, "tune", "--now")
    assert (done.code, done.out, done.err) == (0, "tune is Canceled\n", "")
    record = wait_until_over(tmp_path)
    states = {step.name: step.status for step in record.steps}
    assert states == {
        "tune": Status.CANCELED,
        "tune.prepare": Status.CANCELED,
        "tune.train": Status.CANCELED,
        "other": Status.COMPLETED,
    }


def test_a_step_that_waits_for_a_slot_waits_no_more(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    engine(Step("a", until_told(fifo)), Step("b", "true"), slots=1)
    wait_for(fifo, 1)
    done = cancel(tmp_path, "b")
    assert (done.code, done.out, done.err) == (0, "b is Canceled\n", "")
    assert record_of(tmp_path).step("a").status is Status.RUNNING
    assert cancel(tmp_path, "--now").code == 0


def test_a_step_whose_input_is_hashed_ends_and_another_one_of_the_same_input_goes_on(
    tmp_path: Path, fifo: Fifo, engine: Engine
) -> None:
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, 1 << 40)
    port = (Input("data", "uri_file", DataPath(str(data))),)
    engine(Step("up", until_told(fifo)), Step("a", "true", inputs=port), Step("b", "true", inputs=port))
    wait_for(fifo, 1)
    done = cancel(tmp_path, "a")
    assert (done.code, done.out, done.err) == (0, "a is Canceled\n", "")
    assert record_of(tmp_path).step("b").status is Status.NOT_STARTED
    done = cancel(tmp_path, "b")
    assert (done.code, done.out, done.err) == (0, "b is Canceled\n", "")
    assert cancel(tmp_path, "--now").code == 0


def test_what_is_over_cannot_be_canceled(tmp_path: Path) -> None:
    plan = Plan("p", Graph((Step("a", "true"),)))
    run(plan, Workspace(tmp_path / ".allranks"), Options(instances="loopback", track=False))
    for arguments in ((), ("a",)):
        done = cancel(tmp_path, *arguments)
        assert (done.code, done.out) == (2, "")
        assert "it is Completed" in done.err


def test_no_other_process_gets_the_signal(tmp_path: Path, fifo: Fifo, engine: Engine) -> None:
    """The lock names a process that does not hold it: the number of a dead engine may be another process's by now."""
    engine(Step("train", until_told(fifo)))
    wait_for(fifo, 1)
    lock = Workspace(tmp_path / ".allranks").run_folder(record_of(tmp_path).id) / locks.NAME
    text = lock.read_text()
    with bounded.Popen(["sleep", "1000"]) as innocent:
        lock.write_text(json.dumps({"pid": innocent.pid, "since": 1.0}))
        for arguments in ((), ("train",)):
            done = cancel(tmp_path, *arguments)
            assert (done.code, done.out) == (2, "")
            assert "belongs to another user or another machine" in done.err
        assert innocent.poll() is None
        innocent.kill()
    lock.write_text(text)
    assert cancel(tmp_path, "--now").code == 0
    assert record_of(tmp_path).status is Status.CANCELED
