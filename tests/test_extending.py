"""A new instance kind, launcher, node kind or strategy is one new module and one row of a table."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import OutputRecord, Status, StepRecord
from allranks.local.executor import Executor
from allranks.local.instances.loopback import Loopback
from allranks.local.instances.supervisor import INSTANCE_KINDS
from allranks.local.launchers.by_distribution import LAUNCHERS, launch_every_rank
from allranks.local.launchers.launching import Assignment, LaunchedPrograms, Launcher
from allranks.local.nodes import RUNNERS
from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output


@pytest.fixture(autouse=True)
def _without_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.local.tracking.client.find_spec", lambda _: None)


class Cloudy(Loopback):
    """A kind of instances: loopback with a variable of its own."""

    name = "cloudy"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "CLOUDY": "yes"}


def test_an_instance_kind(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INSTANCE_KINDS, "cloudy", Cloudy())
    record = run_steps(Step("train", 'echo "cloudy $CLOUDY"'), instances="cloudy")
    assert (record.status, record.instances) == (Status.COMPLETED, "cloudy")
    assert Path(record.step("train").ranks[0].log).read_text() == "cloudy yes\n"


def test_a_launcher(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(assignment: Assignment) -> LaunchedPrograms:
        launched.append(len(assignment.ranks))
        return launch_every_rank(assignment)

    launched: list[int] = []
    monkeypatch.setitem(LAUNCHERS, "pytorch", Launcher(launch=launch))
    record = run_steps(Step("train", "true", distribution=PyTorch(2), instance_count=2))
    assert (record.status, launched) == (Status.COMPLETED, [4])


@dataclass(frozen=True)
class Constant(Step):
    """A kind of node: its output is its command's text."""

    kind: ClassVar[str] = "constant"


async def _run_constant(execution: Executor, scope: Scope, node: Constant, record: StepRecord) -> None:
    record.outputs = [OutputRecord(port.name, port.type, "", node.command) for port in node.outputs]
    record.status = Status.COMPLETED
    execution.recorder.changed(record)


def test_a_node_kind(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.local.run_execution.RUNNERS", {**RUNNERS, Constant: _run_constant})
    node = Constant("answer", "42", outputs=(Output("value", "integer"),))
    record = run_steps(plan=Plan("p", Graph((node,))))
    assert record.status is Status.COMPLETED
    assert (record.step("answer").kind, record.step("answer").outputs[0].value) == ("constant", "42")


def test_a_strategy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from allranks.runtime import strategies

    (tmp_path / "plain.py").write_text(
        "from allranks.runtime.strategies.torch_training import ReplicatedTraining\n"
        "from allranks.runtime.strategies.training import Strategy\n"
        "class Plain(Strategy):\n"
        "    name = 'plain'\n"
        "    def _distribute(self, model, optimizer, settings, schedule):\n"
        "        return ReplicatedTraining(model, model, optimizer, settings, schedule, self.device)\n"
    )
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    monkeypatch.setitem(strategies.STRATEGIES, "plain", strategies.Entry("plain", "Plain"))
    plain = strategies.strategy("plain", torch.device("cpu"))
    model = plain.create(lambda: torch.nn.Linear(1, 1))
    training = plain.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
    before = model.weight.item()
    training.backward(training.model(torch.ones(1, 1)).sum())
    assert training.step()
    assert model.weight.item() == pytest.approx(before - 0.1)
    sys.modules.pop(f"{strategies.__name__}.plain")
