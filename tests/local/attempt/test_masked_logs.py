"""The logs of an attempt are searched for secrets up to a number of bytes in all."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allranks.local.attempt import collect as outputs

LINE = b"HF_TOKEN=hunter2-typed\nknown-to-the-plan\n"


def test_logs_beyond_what_is_searched_are_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_MOST_SEARCHED", 2 * len(LINE))
    logs = [tmp_path / f"{number}.txt" for number in range(5)]
    for log in logs:
        log.write_bytes(LINE)
    notes: list[str] = []
    recorder: Any = SimpleNamespace(known={"known-to-the-plan"}, note=lambda record, text: notes.append(text))
    asyncio.run(outputs.mask_logs(recorder, SimpleNamespace(), map(str, logs)))  # type: ignore[arg-type]
    assert [b"hunter2" in log.read_bytes() for log in logs] == [False, False, True, True, True]
    assert not any(b"known" in log.read_bytes() for log in logs)
    (note,) = notes
    assert note.startswith(f"{logs[2]} and 2 other logs: too large to be searched")
