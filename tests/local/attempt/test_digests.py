"""Digests of a run's data: each path is read once, however many steps want it."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from allranks.history.records import OutputRecord, Status
from allranks.local.attempt.digests import Digests
from allranks.local.attempt.running_steps import Stop as StepStop
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input
from allranks.plan.ports import Path as PathValue
from allranks.plan.values import ResolvedInput
from allranks.workspace import Workspace


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each path was digested."""
    found: Counter[str] = Counter()
    of_path = digest.of_path

    def counting(path: Path, stop: Stop | None = None, known: KnownDigests | None = None) -> str:
        found[str(path)] += 1
        return of_path(path, stop, known)

    monkeypatch.setattr(digest, "of_path", counting)
    return found


def test_an_input_that_many_steps_share_is_read_once(read: Counter[str], tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(b"0" * 1000)
    port = Input("data", "uri_file", PathValue(str(data)))
    plan = Plan("shared", Graph(tuple(Step(f"s{number}", f": {number}", inputs=(port,)) for number in range(8))))
    workspace, options = Workspace(tmp_path / "work"), Options(instances="loopback", track=False)

    assert run(plan, workspace, options).status is Status.COMPLETED
    assert read[str(data)] == 1
    again = run(plan, workspace, options)
    assert [step.reused_from is not None for step in again.steps] == [True] * 8
    assert read[str(data)] == 2, "once in each run"


def test_an_input_is_read_once_while_it_is_being_read(read: Counter[str], tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(b"0")
    ports = [ResolvedInput("data", "uri_file", "ro_mount", str(data))]

    async def scenario() -> list[dict[str, str | None]]:
        digests, stop = Digests(), StepStop()
        return await asyncio.gather(*(digests.read(ports, stop) for _ in range(200)))

    assert asyncio.run(scenario()) == [{"data": digest.of_path(data)}] * 200
    assert read[str(data)] == 2, "once by the steps and once by this test"


def test_what_a_step_has_written_is_known_without_reading(read: Counter[str], tmp_path: Path) -> None:
    ports = [ResolvedInput("data", "uri_file", "ro_mount", str(tmp_path / "out"))]

    async def scenario() -> dict[str, str | None]:
        digests, stop = Digests(), StepStop()
        digests.add([OutputRecord("out", "uri_file", str(tmp_path / "out"), digest="d")])
        return await digests.read(ports, stop)

    assert asyncio.run(scenario()) == {"data": "d"}
    assert not read
