"""What two folders must have in common to have one digest, whatever lies in them."""

import inspect
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.plan import digest
from allranks.plan.file_tree import StoppedError


def folder(path: Path) -> Path:
    (path / "deep").mkdir(parents=True)
    (path / "a").write_text("1")
    (path / "deep" / "b").write_text("2")
    return path


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: (path / "a").write_text("2"),
    "name": lambda path: (path / "a").rename(path / "c"),
    "folder": lambda path: (path / "deep").rename(path / "deeper"),
    "empty folder": lambda path: (path / "deep" / "none").mkdir(),
    "empty file": lambda path: (path / "deep" / "none").touch(),
    "dangling link": lambda path: (path / "none").symlink_to("nowhere"),
    "FIFO": lambda path: os.mkfifo(path / "none"),
    "name that is not text": lambda path: Path(os.fsdecode(os.fsencode(path) + b"/\xff")).touch(),
}


def test_the_place_of_a_folder_does_not_matter(tmp_path: Path) -> None:
    assert digest.of_path(folder(tmp_path / "one")) == digest.of_path(folder(tmp_path / "another" / "place"))


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_seen(tmp_path: Path, change: str) -> None:
    changed = folder(tmp_path / "one")
    before = digest.of_path(changed)
    CHANGES[change](changed)
    assert digest.of_path(changed) != before


def test_additions_differ_from_each_other(tmp_path: Path) -> None:
    found = set()
    for number, change in enumerate(CHANGES):
        changed = folder(tmp_path / str(number))
        CHANGES[change](changed)
        found.add(digest.of_path(changed))
    assert len(found) == len(CHANGES)


def test_a_file_s_name_counts_since_programs_look_at_it(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "other/a.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    assert digest.of_path(tmp_path / "a.csv") == digest.of_path(tmp_path / "other" / "a.csv")
    assert digest.of_path(tmp_path / "a.csv") != digest.of_path(tmp_path / "b.csv")


def test_links_are_followed(tmp_path: Path) -> None:
    plain = folder(tmp_path / "plain")
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("a", "deep"):
        (linked / name).symlink_to(plain / name)
    assert digest.of_path(linked) == digest.of_path(plain)


LINKS = {"itself": "loop", "its folder": ".", "a folder above": "../..", "the root": "/", "each other": "deep/back"}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS)
def test_a_link_that_leads_back_is_not_followed(tmp_path: Path, target: str) -> None:
    looped = folder(tmp_path / "one")
    before = digest.of_path(looped)
    (looped / "deep" / "back").symlink_to("../loop")
    (looped / "loop").symlink_to(target)
    assert digest.of_path(looped) == digest.of_path(looped) != before


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "it is a FIFO, not a file"),
        (lambda path: path.symlink_to("nowhere"), "No such file"),
        (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
        (lambda path: None, "No such file"),
    ],
    ids=["FIFO", "dangling", "loop", "missing"],
)
def test_what_is_no_file_at_all_is_an_error_that_says_so(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / "data")
    with pytest.raises(OSError, match=reason) as caught:
        digest.of_path(tmp_path / "data")
    assert caught.value.filename == str(tmp_path / "data")


def test_folders_may_be_nested_deeper_than_python_s_stack(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 300)).mkdir(parents=True)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        assert digest.of_path(tmp_path)
    finally:
        sys.setrecursionlimit(limit)


def test_a_socket_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind("socket")
        assert digest.of_path(tmp_path)


@pytest.mark.parametrize("name", [".", "a"])
def test_it_stops_when_it_is_told_to(tmp_path: Path, name: str) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        digest.of_path(folder(tmp_path / "one") / name, stop)
