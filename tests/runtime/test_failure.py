"""How a rank ends, and what is left for whoever asks why."""

from collections.abc import Callable

import pytest

from allranks.contract import report

# Each starts ranks, which import torch.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("way", "code", "failure", "told"),
    [
        ("return", 0, None, ""),
        ("exit_0", 0, None, ""),
        ("exit_7", 7, ("SystemExit", "the script ended itself with exit code 7"), ""),
        ("exit_text", 1, ("SystemExit", "the script ended itself with exit code 1"), "no data today\n"),
        ("interrupt", 130, None, "interrupted\n"),
        ("memory", 1, ("MemoryError", ""), "MemoryError"),
        ("hang_at_exit", 1, ("ValueError", "the loss is nan"), "ValueError: the loss is nan"),
    ],
)
def test_one_process(start: Callable, way: str, code: int, failure: tuple[str, str] | None, told: str) -> None:
    own_python = ["-u"] if way == "exit_text" else []  # which ends as Python does
    (ended,) = start("end.py", 0, way, interpreter=own_python).wait()
    assert ended.code == code, ended
    assert [(event.type, event.message) for event in ended.of(report.Failure)] == ([failure] if failure else [])
    assert len(ended.of(report.Finished)) == (code == 0)
    assert told in ended.stderr
    assert ("Traceback" in ended.stderr) == (told.startswith(("ValueError", "MemoryError")))


def test_wrong_input_is_told_without_its_traceback(start: Callable) -> None:
    (ended,) = start("end.py", 0, "wrong_input").wait()
    assert ended.code == 2
    assert ended.stderr == "--epochs: -1\n  expected: at least 1\n  fix: give a positive number\n"
    (failure,) = ended.of(report.Failure)
    assert failure.type == "allranks.errors.InputError"


def test_the_first_failure_is_the_cause(two: Callable) -> None:
    """The other rank fails too, since it lost its peer: the times tell them apart."""
    ended = two("end.py", 1, "fail")
    assert [rank.code for rank in ended] == [1, 1]
    (consequence,), (cause,) = (rank.of(report.Failure) for rank in ended)
    assert (cause.type, cause.message) == ("ValueError", "the loss is nan")
    assert cause.time < consequence.time
    assert "in fail" in cause.traceback
    assert cause.traceback in ended[1].stderr
