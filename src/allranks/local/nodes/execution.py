"""What the runner of a node may ask of the execution of its run."""

from __future__ import annotations

from typing import Any, Protocol

from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Step
from allranks.runs.records import Status, StepRecord


class Execution(Protocol):
    """One execution of a plan."""

    @property
    def stopped(self) -> bool:
        """Whether nothing more is to start."""

    async def run_step(self, scope: Scope, step: Step, record: StepRecord) -> None:
        """Run a step's command, or reuse an earlier result. The record has how it went."""

    async def run_graph(self, scope: Scope) -> Status:
        """Run every node of a graph that can run. Return how it went."""

    def iteration(self, loop: StepRecord, label: str, graph: Graph) -> tuple[StepRecord, Scope]:
        """Return the record and the scope of one iteration of a loop, new or of the run that is resumed."""

    def decision(self, path: str, key: str) -> str | None:
        """Return what a node decided before the run was resumed; None where it has not."""

    def decide(self, path: str, key: str, value: str) -> None:
        """Save what a node decides, before it takes effect."""

    def changed(self, record: StepRecord) -> None:
        """Save a record, and tell the observer."""

    def note(self, record: StepRecord, text: str) -> None:
        """Tell the user something about a node."""


class NodeRunner(Protocol):
    """Runs a node of one kind."""

    async def __call__(self, execution: Execution, scope: Scope, node: Any, record: StepRecord) -> None:
        """Run the node; every node that it needs has ended. Set the record's status, and its outputs."""
