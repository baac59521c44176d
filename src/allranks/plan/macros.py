"""What Azure ML fills in where it starts a job: ``${{creation_context.trigger_time}}`` and ``${{name}}`` in texts that
are given to a pipeline's inputs.

The plan keeps them as they were written, so that plans can be compared and a dry run shows them. They get values when
a run starts, and the same ones when it is resumed.
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
"""The job's name, which is the run's id where nobody gave it another one."""

TRIGGER_TIME = "creation_context.trigger_time"
"""When the schedule fired; of a run without a schedule, when it was created."""

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
"""Of a trigger time, in UTC. Azure ML does not document its own: read it with a parser that takes others too."""

EXPRESSION = re.compile(r"\$\{\{\s*(" + "|".join(map(re.escape, (NAME, TRIGGER_TIME))) + r")\s*}}")


def filled(plan: Plan, run: RunRecord) -> Plan:
    """Return the plan with the macros in its inputs' values replaced by what they are worth in this run."""
    fired = run.created if run.trigger_time is None else run.trigger_time
    worth = {
        NAME: run.job_name or run.id,
        TRIGGER_TIME: datetime.fromtimestamp(fired, timezone.utc).strftime(TIME_FORMAT),
    }
    inputs = tuple(_filled(port, worth) for port in plan.graph.inputs)
    return replace(plan, graph=replace(plan.graph, inputs=inputs))


def seconds(time: datetime) -> float:
    """Return a time as seconds since the epoch. One without a time zone is in UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def _filled(port: Input, worth: Mapping[str, str]) -> Input:
    if port.type != "string" or not isinstance(port.value, Literal) or not isinstance(port.value.value, str):
        return port
    return replace(port, value=Literal(EXPRESSION.sub(lambda found: worth[found[1]], port.value.value)))
