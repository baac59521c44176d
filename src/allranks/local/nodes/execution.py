"""The interface through which a node's runner uses the execution of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from allranks.history.recorder import RunRecorder
from allranks.history.records import Point, Status, StepRecord
from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Step


class Execution(Protocol):
    """One execution of a plan. stopped: whether no more nodes may start"""

    recorder: RunRecorder
    stopped: bool

    async def run_step(self, scope: Scope, step: Step, record: StepRecord) -> None:
        """Run a step's command, or reuse an earlier result. Set the record's status."""

    async def run_graph(self, scope: Scope) -> Status:
        """Run every node of a graph that can run. Return the resulting status."""

    def iteration(self, loop: StepRecord, label: str, graph: Graph) -> tuple[StepRecord, Scope]:
        """Return the record and scope of one iteration of a loop. A resumed run's iteration keeps its record."""

    def at_once(self, step: Step) -> int:
        """Return how many steps with the layout of this one the machine executes at once."""

    def is_canceled(self, path: str) -> bool:
        """Return whether a user or another node has canceled a node or one around it."""

    async def cancel(self, path: str) -> None:
        """Cancel a node and everything inside it."""

    async def curve(self, record: StepRecord, metric: str) -> Sequence[Point]:
        """Return what a running step has logged of a metric so far."""

    def decision(self, path: str, key: str) -> str | None:
        """Return a node's decision; None if it has not decided."""

    def decide(self, path: str, key: str, value: str) -> None:
        """Save a node's decision before it takes effect."""


class NodeRunner(Protocol):
    """The runner of one kind of node."""

    async def __call__(self, execution: Execution, scope: Scope, node: Any, record: StepRecord) -> None:
        """Run the node after all nodes that it needs have ended. Set the record's status and outputs."""
