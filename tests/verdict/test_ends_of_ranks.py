"""Which rank is to blame by how the ranks have ended: exit codes, signals, times, reports and logs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks.contract import report
from allranks.history.records import RankRecord, Status, Verdict
from allranks.verdict import judge, tracebacks

TORCH = '  File "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 81, in all_reduce\n'
PEER = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:3042"
BAD = "ValueError: bad batch in shard 7"
REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"
PIPE = "BrokenPipeError: [Errno 32] Broken pipe"
TOO_LONG = "subprocess.TimeoutExpired: Command '['sync']' timed out after 2 seconds"
COMMAND = "subprocess.CalledProcessError: Command '['cp', 'a', 'b']' returned non-zero exit status 1."
PYTHON = "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1."
REACHED = "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv"
ENDED = "it ended with exit code 0, and others still waited for it"
KILLED = "train.sh: line 3:    71 Killed                  python train.py\n"


def raised(text: str, line: int = 10, frames: str = "") -> str:
    return f'Traceback (most recent call last):\n  File "/code/train.py", line {line}, in <module>\n{frames}{text}\n'


LOST = raised(PEER, 31, TORCH)
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/code/train.py", line 12, in <module>
  |     raise ExceptionGroup("2 shards cannot be read", errors)
  | ExceptionGroup: 2 shards cannot be read (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/code/read.py", line 7, in read
    |     raise ValueError("bad batch in shard 7")
    | ValueError: bad batch in shard 7
    +---------------- 2 ----------------
    | OSError: bad shard 8
    +------------------------------------
"""
IN_GROUP = f"{BAD} (in ExceptionGroup: 2 shards cannot be read (2 sub-exceptions))"


@dataclass(frozen=True)
class End:
    """How a rank ended: its exit code or the name of a signal, its log, the time."""

    how: int | str = 1
    log: str = LOST
    time: float = 10.0

    def rank(self, number: int, folder: Path) -> RankRecord:
        log = folder / f"{number}.txt"
        log.write_text(self.log)
        code, signal = (self.how, None) if isinstance(self.how, int) else (None, self.how)
        status = Status.COMPLETED if code == 0 else Status.FAILED
        return RankRecord(number, 0, number, "", status, 0.0, self.time, code, signal, str(log))


LOSES = End()
EARLY, LATER = End(0, "step 4\n", 9.0), End(0, "step 4\n", 11.5)

CASES: dict[str, tuple[list[End], str]] = {
    "it ended before the others lost it": ([LOSES, EARLY], f"rank 1: {ENDED}"),
    "it closed its connections before it ended": ([LOSES, LATER, LOSES], f"rank 1: {ENDED}"),
    "the first of two that ended early": ([LOSES, LATER, EARLY], f"rank 2: {ENDED}"),
    "it ended early and hid its exception": (
        [LOSES, End(0, raised(BAD))],
        f"rank 1: it ended with exit code 0 after {BAD}, and others still waited for it (train.py:10)",
    ),
    "it ended since it had lost another one": ([LOSES, End(0), LATER], f"rank 2: {ENDED}"),
    "it completed long ago, and a data server refuses": (
        [EARLY, End(log=raised(REFUSED))],
        f"rank 1: {REFUSED} (train.py:10)",
    ),
    "a data server refuses, and others lose the rank": (
        [LOSES, End(log=raised(REFUSED), time=11)],
        f"rank 1: {REFUSED} (train.py:10)",
    ),
    "a pipe to a command": ([LOSES, End(log=raised(PIPE), time=11)], f"rank 1: {PIPE} (train.py:10)"),
    "a command that takes too long": ([LOSES, End(log=raised(TOO_LONG), time=11)], f"rank 1: {TOO_LONG} (train.py:10)"),
    "SIGTERM before any other end": ([LOSES, End("SIGTERM", "", 9.9)], "rank 1: ended by SIGTERM"),
    "SIGTERM by mpirun after another end": ([LOSES, End("SIGTERM", "", 10.5)], f"rank 0: {PEER} (train.py:31)"),
    "a handled exception, and a later exit code": (
        [LOSES, End(5, raised(BAD) + "shard 7 is skipped\n")],
        "rank 1: exit code 5",
    ),
    "an exception that may have been handled": (
        [LOSES, End(5, raised(BAD))],
        f"rank 1: exit code 5, after {BAD} (train.py:10)",
    ),
    "a handled exception with a signature": (
        [LOSES, End(5, raised("ModuleNotFoundError: No module named 'apex'") + "without apex\n")],
        "rank 1: exit code 5",
    ),
    "an own exit code after a lost connection": (
        [End(5), End(log=raised(BAD), time=12)],
        f"rank 1: {BAD} (train.py:10)",
    ),
    "a line of the command that begins with an option": (
        [LOSES, End(127, raised(BAD) + "/bin/bash: line 2: --lr: command not found\n", 11)],
        "rank 1: /bin/bash: line 2: --lr: command not found",
    ),
    "sys.exit(137)": ([LOSES, End(137, "no more shards\n")], "rank 1: exit code 137"),
    "a shell's code for SIGKILL": ([LOSES, End(137, KILLED)], "rank 1: ended by SIGKILL"),
    "a command that failed": ([LOSES, End(log=raised(COMMAND, 7))], f"rank 1: {COMMAND} (train.py:7)"),
    "a script that failed, and said why": (
        [LOSES, End(log=raised(BAD, 3) + raised(PYTHON, 7))],
        f"rank 1: {BAD} (train.py:3)",
    ),
    "a script that failed without a word": ([LOSES, End(log=raised(PYTHON, 7))], f"rank 1: {PYTHON} (train.py:7)"),
    "an exception without a text": (
        [LOSES, End(log=raised("Unprintable: <exception str() failed>"))],
        "rank 1: Unprintable: <exception str() failed> (train.py:10)",
    ),
    "a message that begins with a line feed": (
        [LOSES, End(log=raised("ValueError: \nshard 7 is bad\n  see its labels"))],
        "rank 1: ValueError: shard 7 is bad (train.py:10)",
    ),
    "a message that begins with blank lines": (
        [LOSES, End(log=raised("my.errors.Bad: \n\n  shard 7 is bad\n"))],
        "rank 1: my.errors.Bad: shard 7 is bad (train.py:10)",
    ),
    "an empty message, and the end of the log": (
        [LOSES, End(log=raised("ValueError: \n"))],
        "rank 1: ValueError: (train.py:10)",
    ),
    "an exception group": ([LOSES, End(log=GROUP)], f"rank 1: {IN_GROUP} (read.py:7)"),
    "monitored_barrier": (
        [
            End(log=raised("RuntimeError: Rank 3 failed to pass monitoredBarrier in 3000 ms", 9, TORCH)),
            LOSES,
            End(log=raised(REACHED, 9, TORCH), time=9.5),
            End("SIGKILL", "", 12),
        ],
        "rank 3: ended by SIGKILL",
    ),
    "monitored_barrier and a rank that still runs": (
        [
            End(log=raised("RuntimeError: Rank 3 failed to pass monitoredBarrier in 3000 ms", 9, TORCH)),
            LOSES,
            End(log=raised(REACHED, 9, TORCH), time=9.5),
            End(0, "", 12),
        ],
        "rank 3: Rank 3 failed to pass monitoredBarrier in 3000 ms, says rank 0",
    ),
}


@pytest.mark.parametrize(("ends", "expected"), CASES.values(), ids=CASES)
def test_the_rank_to_blame(tmp_path: Path, ends: list[End], expected: str) -> None:
    verdict = _judged(tmp_path, ends)
    assert f"rank {verdict.rank}: {verdict.reason}{f' ({verdict.where})' if verdict.where else ''}" == expected


def _judged(folder: Path, ends: list[End], reports: dict[int, Path] | None = None) -> Verdict:
    verdict = judge.of_ranks("train", [end.rank(number, folder) for number, end in enumerate(ends)], reports or {})
    assert verdict is not None
    return verdict


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SystemExit("no images in shard 7"), "exit code 1: no images in shard 7"),
        (SystemExit("the script ended itself with exit code 1"), "exit code 1"),
        (ValueError("\n\n  shard 7 is bad\nsee its labels"), "ValueError: shard 7 is bad"),
        (ConnectionError("\nlost rank 3"), "ConnectionError: lost rank 3"),
        (_Unprintable(7), f"{__name__}._Unprintable: <exception str() failed>"),
    ],
)
def test_what_a_rank_reports_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, reason: str
) -> None:
    monkeypatch.setenv(report.VARIABLE, str(tmp_path / "report"))
    try:
        raise error
    except BaseException as caught:
        report.append(report.failure_of(caught))
    assert _judged(tmp_path, [End(1, "")], {0: tmp_path / "report"}).reason == reason


@pytest.mark.parametrize(
    ("log", "reported", "hidden"),
    [
        ("step 3\n", False, None),
        ("loss: 0.3\n", False, None),
        (raised(BAD) + "shard 7 is skipped\n", False, None),
        (f"Exception in thread Thread-1:\n{raised(BAD)}", False, None),
        (raised(BAD), False, f"{BAD} (train.py:10)"),
        ("step 3\n", True, "KeyError: 'loss' (test_ends_of_ranks.py"),
    ],
)
def test_the_exception_that_a_command_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, reported: bool, hidden: str | None
) -> None:
    file = tmp_path / "report"
    if reported:
        monkeypatch.setenv(report.VARIABLE, str(file))
        try:
            {}["loss"]
        except KeyError as error:
            report.append(report.failure_of(error))
    found = judge.hidden(End(0, log).rank(0, tmp_path), file)
    assert found is None if hidden is None else found is not None and found.located.startswith(hidden)


def test_the_exception_of_a_thread(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"Exception in thread Thread-1 (load):\n{raised(BAD)}step 3\n")
    found = tracebacks.of_thread(str(log))
    assert found is not None
    assert found.located == f"{BAD} (train.py:10)"
    log.write_text(f"{raised(BAD)}Exception ignored in: <function f>\n{raised(PEER)}")
    assert tracebacks.of_thread(str(log)) is None
