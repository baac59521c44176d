"""Macros that Azure ML expands when it starts a job: ``${{creation_context.trigger_time}}`` and ``${{name}}`` in the
string inputs of a pipeline.

The plan contains them unexpanded, so that plans can be compared and a dry run shows them. They are expanded when a run
starts; a resumed run has the same values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone

from allranks.plan.graph import Plan
from allranks.plan.ports import Input, Literal
from allranks.runs.records import RunRecord

NAME = "name"
"""The job's name. Default: the run's id."""

TRIGGER_TIME = "creation_context.trigger_time"
"""The time at which the schedule fired. For a run without a schedule, the time at which it was created."""

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
"""The format of a trigger time, in UTC. Azure ML does not document its own, so parsers should accept others too."""

EXPRESSION = re.compile(r"\$\{\{\s*(" + "|".join(map(re.escape, (NAME, TRIGGER_TIME))) + r")\s*}}")


def filled(plan: Plan, run: RunRecord) -> Plan:
    """Return the plan with the macros in its inputs replaced by their values in this run."""
    triggered = run.created if run.trigger_time is None else run.trigger_time
    values = {
        NAME: run.job_name or run.id,
        TRIGGER_TIME: datetime.fromtimestamp(triggered, timezone.utc).strftime(TIME_FORMAT),
    }
    inputs = tuple(_filled(port, values) for port in plan.graph.inputs)
    return replace(plan, graph=replace(plan.graph, inputs=inputs))


def seconds(time: datetime) -> float:
    """Return a time as seconds since the epoch. One without a time zone is in UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def _filled(port: Input, values: Mapping[str, str]) -> Input:
    if port.type != "string" or not isinstance(port.value, Literal) or not isinstance(port.value.value, str):
        return port
    return replace(port, value=Literal(EXPRESSION.sub(lambda match: values[match[1]], port.value.value)))
