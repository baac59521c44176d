"""The interface through which a node's runner uses the execution of its run."""

from __future__ import annotations

from typing import Any, Protocol

from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Step
from allranks.runs.records import Status, StepRecord


class Execution(Protocol):
    """One execution of a plan."""

    @property
    def stopped(self) -> bool:
        """Whether no more nodes may start."""

    async def run_step(self, scope: Scope, step: Step, record: StepRecord) -> None:
        """Run a step's command, or reuse an earlier result. Set the record's status."""

    async def run_graph(self, scope: Scope) -> Status:
        """Run every node of a graph that can run. Return the resulting status."""

    def iteration(self, loop: StepRecord, label: str, graph: Graph) -> tuple[StepRecord, Scope]:
        """Return the record and scope of one iteration of a loop. A resumed run's iteration keeps its record."""

    def decision(self, path: str, key: str) -> str | None:
        """Return a node's decision; None if it has not decided."""

    def decide(self, path: str, key: str, value: str) -> None:
        """Save a node's decision before it takes effect."""

    def changed(self, record: StepRecord) -> None:
        """Save a record, and notify the observer."""

    def note(self, record: StepRecord, text: str) -> None:
        """Add a note for the user to a node."""


class NodeRunner(Protocol):
    """The runner of one kind of node."""

    async def __call__(self, execution: Execution, scope: Scope, node: Any, record: StepRecord) -> None:
        """Run the node after all nodes that it needs have ended. Set the record's status and outputs."""
