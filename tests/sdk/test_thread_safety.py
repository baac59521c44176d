"""What azure-ai-ml and CPython do not allow in two threads at once, one does after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import bounded
from allranks.sdk import internals, runtime_copy, session

SOON = 0.2
"""Seconds for what would happen at once in a thread that nothing blocks."""


def family(name: str, reading: Callable[[], None]) -> tuple[Any, Any]:
    """A model of the REST client and one that inherits from it, which the SDK knows by their names. `reading` is called
    when a table of fields is made."""

    class Field:
        @property
        def _type(self) -> None:
            reading()
            raise AttributeError

    with session.session(client=True):
        base = type(f"Base{name}", (internals.RestModel,), {"field": Field(), "other": Field()})
        return base, type(f"Derived{name}", (base,), {})


def test_models_are_created_in_turn() -> None:
    created: list[threading.Thread] = []

    def another_thread() -> None:
        if not created:
            created.append(threading.Thread(target=lambda: base({})))
            created[0].start()
            created[0].join(SOON)

    base, derived = family("Safe", another_thread)
    with session.session(client=True):
        assert derived({}) == {}
    bounded.join(created[0])
    assert base({}) == {}


def test_source_is_parsed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [0], [0]

    def parse(text: str) -> str:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        threading.Event().wait(SOON / 10)
        inside[0] -= 1
        return text

    monkeypatch.setattr(runtime_copy.ast, "parse", parse)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(runtime_copy.parsed, ["a", "b", "c", "d"])) == ["a", "b", "c", "d"]
    assert most == [1]
