import json
import logging
import multiprocessing
import os
from pathlib import Path

import pytest

from allranks import engine_log

log = logging.getLogger("allranks.tests")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(autouse=True)
def _stopped():
    yield
    engine_log.stop()


def test_a_line_holds_the_event_its_process_and_its_data(tmp_path: Path) -> None:
    engine_log.start(str(tmp_path / "engine.log"), "supervisor")
    log.info("rank exited", extra={"node": "train", "rank": 2})
    log.debug("not logged by default")
    (line,) = lines(tmp_path / "engine.log")
    assert line.pop("time")
    assert line.pop("monotonic")
    assert line == {
        "process": "supervisor", "pid": os.getpid(), "level": "info", "logger": "allranks.tests",
        "event": "rank exited", "node": "train", "rank": 2,
    }  # fmt: skip


def test_secrets_are_masked_also_in_an_exception(tmp_path: Path) -> None:
    engine_log.start(str(tmp_path / "engine.log"), "engine", mask=lambda text: text.replace("hunter2", "***"))
    try:
        raise ValueError("wrong password hunter2")
    except ValueError:
        log.exception("node failed", extra={"node": "hunter2"})
    (line,) = lines(tmp_path / "engine.log")
    assert line["node"] == "***"
    assert str(line["exception"]).endswith("ValueError: wrong password ***")


def _log_lines(path: str, number: int) -> None:
    engine_log.start(path, f"agent {number}")
    for count in range(200):
        log.info("sampled", extra={"count": count, "padding": "x" * 2000})


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_log_lines, args=(str(path), number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert sorted({line["process"] for line in lines(path)}) == [f"agent {number}" for number in range(4)]
    assert len(lines(path)) == 800


def test_the_level_is_that_of_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(engine_log.LEVEL_VARIABLE, "debug")
    engine_log.start(str(tmp_path / "engine.log"), "engine")
    log.debug("detail")
    assert [line["event"] for line in lines(tmp_path / "engine.log")] == ["detail"]
