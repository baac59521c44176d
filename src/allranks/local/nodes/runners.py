"""The runner of each kind of node."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from allranks.local.nodes import command, condition, graph, loops
from allranks.local.nodes.execution import NodeRunner
from allranks.plan.graph import Condition, DoWhile, ParallelFor, Pipeline, Step

RUNNERS: Mapping[type[Any], NodeRunner] = MappingProxyType(
    {
        Step: command.run,
        Pipeline: graph.run,
        Condition: condition.run,
        DoWhile: loops.run_do_while,
        ParallelFor: loops.run_parallel_for,
    }
)
"""By the class of the node. A sweep and a parallel task will be two more rows."""
