"""A script cannot tell whether it was started as a new process or forked: everything that it can see is compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allranks.local.instances.programs import PythonProgram

STATE = Path(__file__).with_name("state_of_process.py").read_text(encoding="utf-8")


def _compare(cold: str, forked: str) -> None:
    one, other = (json.loads(re.sub(r" at 0x[0-9a-f]+", "", log)) for log in (cold, forked))
    assert list(_differences(one, other)) == []


def _differences(cold: Any, forked: Any, place: str = "") -> Iterator[str]:
    if isinstance(cold, dict) and isinstance(forked, dict):
        for name in sorted({*cold, *forked}):
            yield from _differences(cold.get(name), forked.get(name), f"{place}/{name}")
    elif cold != forked:
        yield f"{place}: {cold} is not {forked}"


@pytest.mark.parametrize("shared", [{}, {"PYTHONUNBUFFERED": ""}, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "latin-1"}])
def test_a_script_sees_the_same(kind: str, run_ranks, shared: dict[str, str]) -> None:
    cold = run_ranks(kind, STATE, forked=False, shared=shared)
    forked = run_ranks(kind, STATE, forked=True, shared=shared)
    assert forked.codes == cold.codes == (0,)
    _compare(cold.logs[0], forked.logs[0])


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python -m train --a 'b c'", PythonProgram(("--a", "b c"), module="train")),
        ("python ./train.py é", PythonProgram(("é",), script="./train.py")),
        ("python3 ../code/train.py", PythonProgram((), script="../code/train.py", executable_name="python3")),
        ("python -u train.py", PythonProgram((), script="train.py", options=("-u",))),
        ("A=1 B= python train.py", PythonProgram((), script="train.py", variables={"A": "1", "B": ""})),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_form_of_a_command_sees_the_same(kind: str, run_ranks, command: str, program: PythonProgram) -> None:
    cold = run_ranks(kind, STATE, forked=False, command=command)
    forked = run_ranks(kind, STATE, forked=True, command=command, program=program)
    assert forked.codes == cold.codes == (0,)
    _compare(cold.logs[0], forked.logs[0])
