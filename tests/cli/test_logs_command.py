"""`allranks logs`: of several ranks, of one, as they grow, and whatever bytes they are."""

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bounded
from allranks.contract.pytorch import PyTorch
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from allranks_command import PATIENCE, Fifo, called, environment, started, words, write_job
from run_records import make_ranks, make_run, make_step

Runner = Callable[..., RunRecord]

MEMORY = 100_000_000
"""Bytes that the command may use."""

LINE, LINES = b"x" * 1_000_000, (b"x" * 99 + b"\n") * 10_000

BLOCKS = 80
"""Of a log, a million bytes each: one log and the command's modules have more bytes than it may use."""

PEAK = """
import resource, subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as command:
    size = 0
    while data := command.stdout.read1():
        size += len(data)
print(command.returncode, size, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""
"""Prints a command's exit code, the size of its output, and its largest memory. A process begins with the memory that
its parent has in ru_maxrss: a process of the tests has more than is measured here."""


def run_in(folder: Path, *steps: Step) -> RunRecord:
    return run(Plan("plan", Graph(steps)), Workspace(folder / ".allranks"), Options(instances="loopback"))


@pytest.fixture
def ran(tmp_path: Path) -> Runner:
    """Runs steps in the workspace of tmp_path."""
    return functools.partial(run_in, tmp_path)


@pytest.fixture(scope="module")
def no_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that printed bytes which are no text."""
    folder = tmp_path_factory.mktemp("no text")
    run_in(folder, Step("train", r"printf 'caf\303\251 \377\376 \000 \033[31m\r1%%\r2%%\nend'"))
    return folder


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose two ranks failed before its second step started."""
    folder = tmp_path_factory.mktemp("failed")
    run_in(folder, Step("train", "exit 1", distribution=PyTorch(2)), Step("late", "true", after=("train",)))
    return folder


def test_lines_of_several_ranks_have_the_step_and_the_rank_before_them(tmp_path: Path, ran: Runner) -> None:
    ran(
        Step("train", "echo one; echo; printf 'two of '$RANK", distribution=PyTorch(2)),
        Step("evaluate", "echo 0.9", after=("train",)),
    )
    everything = called("logs", folder=tmp_path)
    assert everything.code == 0
    whole = ["train:0 | one", "train:0 | ", "train:1 | one", "train:1 | "]
    assert sorted(everything.out.splitlines()) == sorted(
        [*whole, "train:0 | two of 0", "train:1 | two of 1", "evaluate:0 | 0.9"]
    )
    assert [line for line in everything.out.splitlines() if line in whole] == whole
    assert called("logs", "latest", "train", "--rank", 1, folder=tmp_path).out == "one\n\ntwo of 1\n"
    assert called("logs", "latest", "evaluate", folder=tmp_path).out == "0.9\n"
    found = called("logs", "latest", "train", "--json", folder=tmp_path).json
    assert [(one["step"], one["rank"], one["lines"]) for one in found] == [
        ("train", rank, ["one", "", f"two of {rank}"]) for rank in (0, 1)
    ]


def test_bytes_that_are_no_text_come_out_as_they_are(no_text: Path) -> None:
    done = called("logs", "--follow", folder=no_text)
    assert (done.code, done.err) == (0, "")
    assert done.out.encode("utf-8", "surrogateescape") == b"caf\xc3\xa9 \xff\xfe \0 \x1b[31m\r1%\r2%\nend\n"


def test_bytes_that_are_no_text_are_replaced_in_json(no_text: Path) -> None:
    (log,) = called("logs", "--json", folder=no_text).json
    assert log["lines"][0].startswith("café \ufffd\ufffd \0 ")


def test_follow_prints_what_comes_and_ends_with_the_run(tmp_path: Path) -> None:
    workspace = tmp_path / ".allranks"
    with Fifo(workspace / "up") as up:
        go = workspace / "go"
        os.mkfifo(go)
        write_job(
            tmp_path,
            "echo before; echo up > ${{inputs.up}}; read line < ${{inputs.go}}; echo $line; printf 'the end'",
            inputs={"up": str(up.path), "go": str(go)},
        )
        with started("run", "job.yml", folder=tmp_path, stdout=subprocess.DEVNULL) as engine:
            assert up.read() == b"up\n"
            with started("logs", "latest", "--follow", folder=tmp_path) as follow:
                assert follow.stdout is not None
                assert follow.stdout.readline() == "before\n"
                go.write_text("after\n")
                assert follow.communicate(timeout=PATIENCE) == ("after\nthe end\n", "")
            assert follow.returncode == 0
            engine.communicate(timeout=PATIENCE)
        assert engine.returncode == 0


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, ran: Runner) -> None:
    ran(Step("train", "seq 200000"))
    for arguments in (("logs",), ("show", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        command = bounded.Popen(
            words(*arguments), cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE
        )
        os.close(writing)
        _, err = command.communicate(timeout=PATIENCE)
        assert err == b"", arguments


def test_a_full_disk_behind_the_output_is_said(tmp_path: Path, ran: Runner) -> None:
    ran(Step("train", "seq 200000"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words("logs"), cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize(
    ("options", "block"), [((), LINES), (("--follow",), LINE)], ids=["many lines", "one line followed"]
)
def test_logs_that_are_larger_than_the_memory(tmp_path: Path, options: tuple[str, ...], block: bytes) -> None:
    workspace = Workspace(tmp_path / ".allranks")
    workspace.make()
    ranks = make_ranks(1, 1)
    ranks[0].log = str(workspace.runs / "log")
    with open(ranks[0].log, "wb") as log:
        log.writelines(itertools.repeat(block, BLOCKS))
    with Store(workspace.database) as store:
        store.add_run(make_run(make_step("train", ranks=ranks)), "{}")
    measured = subprocess.run(
        [sys.executable, "-c", PEAK, *words("logs", *options)],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        timeout=2 * PATIENCE,
        check=True,
    )
    code, size, peak = map(int, measured.stdout.split())
    assert code == 0
    assert size > BLOCKS * len(block.replace(b"\n", b""))
    assert peak <= MEMORY


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("latest", "trian"), ["step trian", "there is no such step", "one of: train, late"]),
        (("latest", "train", "--rank", "2"), ["step train, rank 2", "there is no such rank", "0 to 1"]),
        (("latest", "late", "--rank", "0"), ["step late, rank 0", "no rank has started"]),
        (("nope",), ["run nope", "no such run", "`allranks runs` lists them"]),
        (("latest", "trian", "--follow"), ["step trian", "there is no such step"]),
        (("latest", "trian", "--json"), ["step trian", "there is no such step"]),
    ],
)
def test_what_is_not_there(failed: Path, arguments: tuple[str, ...], said: list[str]) -> None:
    done = called("logs", *arguments, folder=failed)
    assert (done.code, done.out) == (2, "")
    assert not [text for text in said if text not in done.err]
