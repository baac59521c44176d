import json
import math
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bounded
from allranks.contract import report
from allranks.contract.report import VARIABLE, Event, Failure, Finished, Note, Progress, append, read, truncated

numbers = st.floats(allow_nan=False)
texts = st.text()
events = st.one_of(
    st.builds(
        Progress,
        st.integers(0, 10**9),
        st.none() | st.integers(0, 10**9),
        st.dictionaries(texts, numbers, max_size=3),
        st.none() | st.integers(0, 1000),
        numbers,
    ),
    st.builds(Failure, texts, texts, texts, numbers),
    st.builds(Note, texts, numbers),
    st.builds(Finished, st.integers(1, 1 << 22), numbers, st.lists(st.tuples(st.integers(), numbers)).map(tuple)),
)


def named(path: Path) -> dict[str, str]:
    return {"ALLRANKS_REPORT": str(path)}


@given(st.lists(events, max_size=5))
def test_what_is_appended_is_read_back_in_order(told: list[Event]) -> None:
    # Not tmp_path, which all examples of a property would share.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank"
        for event in told:
            report.append(event, named(path))
        assert report.read(path)[0] == told


def test_a_reader_goes_on_from_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rank"
    report.append(Note("one", 1), named(path))
    first, offset = report.read(path)
    assert report.read(path, offset) == ([], offset)
    report.append(Note("two", 2), named(path))
    second, _ = report.read(path, offset)
    assert (first, second) == ([Note("one", 1)], [Note("two", 2)])


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rank"
    report.append(Note("one", 1), named(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    found, offset = report.read(path)
    assert found == []
    path.write_bytes(whole)
    assert report.read(path, offset)[0] == [Note("one", 1)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"event": "progress", "step": 1',
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"event": "confetti", "time": 1}',
        b'{"event": "note"}',
        b'{"event": "progress", "step": "x", "total": null, "metrics": {}, "epoch": null, "time": 1}',
        b'{"event": "progress", "step": 1, "total": null, "metrics": 3, "epoch": null, "time": 1}',
        b'{"event": ["note"], "text": "", "time": 1}',
    ],
)
def test_a_torn_or_unknown_line_costs_only_itself(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rank"
    report.append(Note("one", 1), named(path))
    with path.open("ab") as file:
        file.write(line)  # without its end, as a full disk leaves it
    report.append(Note("two", 2), named(path))
    assert report.read(path)[0] == [Note("one", 1), Note("two", 2)]


def test_a_field_of_a_later_version_is_no_reason_to_skip_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rank"
    path.write_text(json.dumps({"event": "note", "text": "one", "time": 1, "colour": "red"}) + "\n")
    assert report.read(path)[0] == [Note("one", 1)]


def test_a_file_that_is_not_there_has_no_events(tmp_path: Path) -> None:
    assert report.read(tmp_path / "none", 7) == ([], 7)


def test_a_loss_that_is_not_a_number_is_told_too(tmp_path: Path) -> None:
    report.append(Progress(1, metrics={"loss": math.nan}), named(tmp_path / "rank"))
    (found,), _ = report.read(tmp_path / "rank")
    assert isinstance(found, Progress)
    assert math.isnan(found.metrics["loss"])


class Tensor:
    """What a metric often is: a number only once it is asked."""

    def __init__(self, value: float | None) -> None:
        self.value = value

    def __float__(self) -> float:
        if self.value is None:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.value


def test_a_metric_may_be_a_tensor(tmp_path: Path) -> None:
    report.append(Progress(1, metrics={"loss": Tensor(0.5)}, time=2), named(tmp_path / "rank"))  # type: ignore[dict-item]
    assert report.read(tmp_path / "rank")[0] == [Progress(1, metrics={"loss": 0.5}, time=2)]


def test_a_report_never_ends_a_training(tmp_path: Path) -> None:
    report.append(Note("no folder"), named(tmp_path / "none" / "rank"))
    report.append(Note("a folder"), named(tmp_path))
    report.append(Progress(1, metrics={"loss": Tensor(None)}), named(tmp_path / "rank"))  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="this system has no full disk to write to")
def test_a_full_disk_never_ends_a_training() -> None:
    report.append(Note("one"), {"ALLRANKS_REPORT": "/dev/full"})


@pytest.mark.parametrize("environ", [{}, {"ALLRANKS_REPORT": ""}])
def test_outside_the_engine_nothing_is_written(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report.append(Note("one"), environ)
    assert list(tmp_path.iterdir()) == []


def test_processes_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    code = "from allranks.contract.report import *\nfor i in range(200): append(Note('x' * 500 + str(i)))"
    writers = [bounded.Popen([sys.executable, "-c", code], env={**os.environ, **named(path)}) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(report.read(path)[0]) == 400


@pytest.mark.parametrize(
    "message",
    [
        "OSError: [Errno 28] No space left on device: 'model.pt'",
        "[Errno 122] Disk quota exceeded",
        "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 640 vs 598",
        "[enforce fail at inline_container.cc:325] . PytorchStreamWriter failed writing file data/1: file write failed",
        "RuntimeError: write(): fd 3 failed with No space left on device",
    ],
)
def test_a_full_disk_is_recognised(message: str) -> None:
    assert report.tells_of_full_disk(message)


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "[Errno 13] Permission denied: 'model.pt'",
        "ValueError: unexpected pos 640 vs 598",
    ],
)
def test_other_messages_are_not(message: str) -> None:
    assert not report.tells_of_full_disk(message)


@pytest.mark.parametrize("part", ["x", "a word ", "\0\x1b[31m\r", "ä\n"])
def test_only_the_beginning_and_the_end_of_a_long_text_are_reported(part: str, tmp_path: Path) -> None:
    text = part * 3_000_000
    environ = {VARIABLE: str(tmp_path / "report")}
    append(Failure("ValueError", f"begin {text} end", f"Traceback\n{text}"), environ)
    assert (tmp_path / "report").stat().st_size < 200_000
    ((failure,), _) = read(tmp_path / "report")
    assert isinstance(failure, Failure)
    assert re.fullmatch(r"(?s)begin .* … \([\d,]+ characters left out\) … .* end", failure.message)
    assert truncated(failure.message) == failure.message
    assert len(failure.message) <= 8192
