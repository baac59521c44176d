"""Runners for the nodes of a graph, one per kind. A new kind is one module and one row of `RUNNERS`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from allranks.local.executor import NodeRunner
from allranks.local.nodes import loops, pipeline, sweep
from allranks.plan.graph import Condition, DoWhile, ParallelFor, Pipeline, StandIn, Step, Sweep

RUNNERS: Mapping[type[Any], NodeRunner] = MappingProxyType(
    {
        Step: lambda execution, scope, node, record: execution.run_step(scope, node, record),
        Pipeline: pipeline.run,
        Condition: pipeline.run_condition,
        DoWhile: loops.run_do_while,
        ParallelFor: loops.run_parallel_for,
        Sweep: sweep.run,
        StandIn: pipeline.run_stand_in,
    }
)
"""By the class of the node."""
