"""Windows of logs."""

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from serving import Client

from allranks.history.store import Store
from allranks_studio.server import logs
from run_records import make_ranks, make_run, make_step

PEM = f"-----BEGIN PRIVATE KEY-----\n{'QUFB' * 16}\n{'QkJC' * 16}\n-----END PRIVATE KEY-----\n"


@given(st.lists(st.sampled_from(["", "a", "line", "ä€", "x" * 30])), st.booleans(), st.integers(1, 40))
def test_windows_that_follow_each_other_are_the_log(lines: list[str], ended: bool, size: int) -> None:
    content = "\n".join(lines).encode() + b"\n" * ended
    file = io.BytesIO(content)
    parts, place = "", 0
    while place < len(content):
        window = logs.window(file, len(content), place, size, frozenset(), complete=ended)
        assert window["offset"] == place
        if window["end"] == place:
            break
        parts, place = parts + window["text"], window["end"]
    assert parts == content.decode()[: len(content.decode()) if ended else content.decode().rfind("\n") + 1]


@given(st.integers(-300, 300))
def test_a_window_anywhere_begins_with_a_line(offset: int) -> None:
    content = b"".join(b"line %d\n" % number for number in range(30))
    window = logs.window(io.BytesIO(content), len(content), offset, 50, frozenset(), complete=True)
    assert content[window["offset"] : window["end"]].decode() == window["text"]
    assert window["offset"] in (0, len(content)) or content[window["offset"] - 1 :].startswith(b"\nline")


def test_a_secret_that_begins_before_the_window_is_masked() -> None:
    content = f"{PEM}end\n".encode()
    window = logs.window(io.BytesIO(content), len(content), 100, 1000, frozenset(), complete=True)
    assert window["text"].replace("*", "").strip() == "end"
    assert window["end"] == len(content)


def test_long_lines_are_shown_in_part() -> None:
    content = b"x " * 100_000 + b"\nnext\n"
    first = logs.window(io.BytesIO(content), len(content), 0, 100, frozenset(), complete=True)
    assert 1000 < len(first["text"]) < 5000
    last = logs.window(io.BytesIO(content), len(content), -100, 100, frozenset(), complete=True)
    assert last["text"] == "next\n"


def test_a_search_over_all_ranks(studio: Client, root: Path) -> None:
    step = make_step("train", ranks=make_ranks(1, 3))
    for rank in step.ranks:
        rank.log = str(root / f"runs/b/{rank.rank}.txt")
    (root / "runs/b").mkdir(parents=True)
    (root / "runs/b/0.txt").write_text("nothing\n")
    (root / "runs/b/1.txt").write_text("a\nstep 1: Found it\nb\nfound at the end")
    with Store(root / "allranks.db") as store:
        store.add_run(make_run(step, id="b"), "{}")
    found = studio.get("/api/log/search", run="b", query="fOUND")
    assert found == {
        "hits": [
            {"step": "train", "rank": 1, "offset": 2, "text": "step 1: Found it"},
            {"step": "train", "rank": 1, "offset": 21, "text": "found at the end"},
        ],
        "complete": True,
    }
    part = studio.get("/api/log", run="b", step="train", rank=1, offset=found["hits"][1]["offset"])
    assert part["text"] == "found at the end"
