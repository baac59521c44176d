import pytest

from allranks.contract.pytorch import PyTorch
from allranks.local import capacity
from allranks.plan.graph import Graph, Plan, Step


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 GB of memory, 2 cores, and 4,096 processes."""
    monkeypatch.setattr(capacity, "machine_memory", lambda: 8 << 30)
    monkeypatch.setattr(capacity, "most_processes", lambda: 4096)
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def _plan(instances: int, processes: int) -> Plan:
    return Plan("p", Graph((Step("train", "true", instance_count=instances, distribution=PyTorch(processes)),)))


@pytest.mark.parametrize(
    ("instances", "processes", "found"),
    [(1, 1, []), (64, 8, []), (2, 1000, []), (1000, 1, ["15.6 GB"]), (1, 2100, ["8.2 GB"])],
)
def test_what_this_machine_cannot_hold(instances: int, processes: int, found: list[str]) -> None:
    problems = list(capacity.problems(_plan(instances, processes)))
    assert len(problems) == len(found)
    for problem, text in zip(problems, found, strict=True):
        assert text in f"{problem.found} {problem.expected}"
        assert problem.where == "step train, key resources.instance_count"


@pytest.mark.parametrize(
    ("instances", "processes", "found"),
    [
        (4, 8, []),
        (8, 8, ["64 ranks on 2 cores: 32 share each core", "64 ranks need 15.6 GB"]),
        (1, 33, ["33 ranks on 2 cores", "33 ranks need"]),
    ],
)
def test_what_will_be_slow(instances: int, processes: int, found: list[str]) -> None:
    warnings = list(capacity.warnings(_plan(instances, processes)))
    assert len(warnings) == len(found)
    for warning, text in zip(warnings, found, strict=True):
        assert text in warning.found


def test_more_processes_than_this_user_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "most_processes", lambda: 500)
    (problem,) = capacity.problems(_plan(2, 250))
    assert "fewer than 500" in problem.expected


def test_the_limits_of_this_machine_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert capacity.most_processes() > 100
