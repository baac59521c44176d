"""Reading logs in pieces: what is printed does not depend on where a piece ends, nor on when somebody looks."""

import io
import os
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allranks.contract import report
from allranks.history import log_reader
from allranks.history.log_reader import tail
from allranks.history.log_redaction import mask_in_file
from allranks.history.records import RunRecord, Status
from run_records import make_ranks, make_run, make_step

CONTENT = st.lists(
    st.sampled_from([b"a", b"step", b"\n", b"\r", b"\r\n", b"\x0c", b"\x1e", b'"', b"\\", b"\0", b"\xff", b"\xc3"])
    | st.sampled_from(["é", "\u2028", "\x85", "😀"]).map(str.encode),
    max_size=12,
).map(b"".join)
SIZES = st.integers(1, 7)


def record(folder: Path, ranks: int, status: Status = Status.COMPLETED) -> RunRecord:
    """A run of one step, whose logs are `0`, `1`, ... in the folder."""
    step = make_step("train", ranks=make_ranks(1, ranks), status=status)
    for rank in step.ranks:
        rank.log, rank.status = str(folder / str(rank.rank)), status
    return make_run(step, status=status)


def output(contents: Iterable[bytes], piece: int, folder: Path) -> bytes:
    """What is printed of logs with these contents, read in pieces of so many bytes."""
    logs = list(contents)
    for rank, content in enumerate(logs):
        (folder / str(rank)).write_bytes(content)
    run = record(folder, len(logs))
    raw = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
        patch.setattr(log_reader, "PIECE", piece)
        log_reader.print_logs(run, None, None)
        return raw.getvalue()


def test_ranks_that_printed_nothing_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output([b"", b"x", b""], 64, tmp_path)
    assert capsys.readouterr().err == "train: ranks 0 and 2 printed nothing\n"
    (tmp_path / "0").unlink()  # of a submitted run whose log has not been downloaded
    log_reader.print_logs(record(tmp_path, 1, Status.RUNNING), None, None)
    (tmp_path / "0").touch()
    log_reader.print_logs(record(tmp_path, 1, Status.RUNNING), None, None)
    assert capsys.readouterr().err == "train: rank 0 printed nothing so far\n"


@given(st.lists(CONTENT, max_size=3), SIZES)
@example([b"one", b"", b"two\n\nthree\n"], 1)
def test_pieces_do_not_show_in_what_is_printed(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], piece: int
) -> None:
    expected = b""
    for rank, content in enumerate(contents):
        prefix = f"train:{rank} | ".encode() if len(contents) > 1 else b""
        lines = content.removesuffix(b"\n").split(b"\n") if content else []
        expected += b"".join(prefix + line + b"\n" for line in lines)
    assert output(contents, piece, tmp_path_factory.mktemp("logs")) == expected


def test_the_lines_for_json_are_those_of_the_text(tmp_path: Path) -> None:
    run, content = record(tmp_path, 1), b'a\r\r\n\xc3"\x1e\xe2\x80\xa8\0\n\nlast'
    Path(run.steps[0].ranks[0].log).write_bytes(content)
    (entry,) = log_reader.log_entries(run, "train", 0)
    lines = content.decode("utf-8", "replace").splitlines()
    assert entry == {"run": run.id, "step": "train", "rank": 0, "log": str(tmp_path / "0"), "lines": lines}


@pytest.mark.parametrize("piece", [1, 4, 1 << 16])
def test_ranks_that_write_in_turn_do_not_cut_into_each_others_lines(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run = record(tmp_path, 2, Status.RUNNING)
    looks = iter([{"0": b"one\nthe begin"}, {"1": b"two\n"}, {"0": b"ning"}, {"0": b", the end\n", "1": b"last"}, {}])
    printed = []

    def find(identity: str) -> RunRecord:
        printed.append(capfdbinary.readouterr().out)
        new = next(looks)
        for name, text in new.items():
            with open(tmp_path / name, "ab") as log:
                log.write(text)
        if not new:
            run.status = Status.COMPLETED
        return run

    monkeypatch.setattr(log_reader, "PIECE", piece)
    monkeypatch.setattr(log_reader, "time", SimpleNamespace(sleep=lambda seconds: None))
    log_reader.follow_logs(find, run.id, None, None)
    printed.append(capfdbinary.readouterr().out)
    assert printed == [
        b"",
        b"train:0 | one\n",
        b"train:1 | two\n",
        b"",
        b"train:0 | the beginning, the end\n",
        b"train:1 | last\n",
    ]


def test_a_line_without_an_end_yet_is_not_held_in_memory(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run = record(tmp_path, 8, Status.RUNNING)
    for rank in run.steps[0].ranks:
        with open(rank.log, "wb") as log:
            log.write(b"one\n")
            log.truncate(10_000_000)
    tracemalloc.start()
    try:
        log_reader.print_logs(run, None, None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert capfdbinary.readouterr().out == b"".join(b"train:%d | one\n" % rank for rank in range(8))
    assert peak < 2_000_000


@pytest.mark.parametrize("after", ["", "one more line\n", "more\n" * 15])
@pytest.mark.parametrize("part", ["x", "x\r\0"])
def test_a_tail_has_the_beginning_of_a_line_of_any_length(part: str, after: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("0 of 9\n" * 20_000 + f"Traceback\n  at train.py\nValueError: bad batch {part * 2_000_000}\n{after}")
    lines = tail(str(log), 4000, 1 << 18)
    (said,) = (line for line in lines if line.startswith("ValueError: bad batch x"))
    assert lines[lines.index(said) - 1] == "  at train.py"
    assert list(lines[len(lines) - after.count("\n") :]) == after.splitlines()


def test_a_tail_has_no_line_of_a_secret_that_began_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "-----BEGIN PRIVATE KEY-----\n"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 25
        + "-----END PRIVATE KEY-----\nlast\n"
    )
    assert tail(str(log)) == ("***", "last")


@pytest.mark.parametrize("entry", ["a device", "a link", "a link above", "a FIFO"])
def test_what_a_rank_puts_in_the_place_of_its_log_is_not_read(entry: str, tmp_path: Path) -> None:
    private, log = tmp_path / "private", tmp_path / "step" / "user_logs" / "std_log.txt"
    private.mkdir()
    (private / "std_log.txt").write_text("private text\n")
    log.parent.parent.mkdir()
    if entry == "a link above":
        log.parent.symlink_to(private)
    else:
        log.parent.mkdir()
    if entry == "a link":
        log.symlink_to(private / "std_log.txt")
    elif entry == "a device":
        log.symlink_to("/dev/zero")
    elif entry == "a FIFO":
        os.mkfifo(log)
    run = record(log.parent, 1)
    run.steps[0].ranks[0].log = str(log)
    printed = io.BytesIO()
    log_reader.print_logs(run, None, None, printed)
    assert printed.getvalue() == b""
    assert log_reader.tail(str(log)) == ()
    with pytest.raises(OSError, match=r"link|FIFO"):
        mask_in_file(str(log), ["private text"], 100)
    assert (private / "std_log.txt").read_text() == "private text\n"
    assert report.read(log)[0] == []
