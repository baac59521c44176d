"""Read a Spark node as a step that runs its script, for which PySpark starts Spark on this machine, in local mode."""

from __future__ import annotations

import shlex
from typing import Any

from allranks.plan.graph import StandIn, Step
from allranks.plan.reader import environments, registered_component, stand_in, step_ports
from allranks.plan.reader.command_step import identity, snapshot_of
from allranks.plan.reader.context import Context, plain

_OF_CLUSTER = ("spark.driver.", "spark.dynamicAllocation.", "spark.executor.")
"""Prefixes of settings for the size of a cluster, which a single machine does not have."""


def read(name: str, entity: Any, context: Context) -> Step | StandIn | None:
    """Return the step; a node that does not run for one that starts a class instead of a Python file."""
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    component = entity.component
    entry = str(component.entry.entry)
    if not entry.endswith(".py"):
        return stand_in.read(name, entity, None, context, f"a Spark node of the class {entry}")
    step_ports.refuse_unknown(entity, place, context)
    component_name, version = identity(component)
    return Step(
        name,
        f"python {shlex.quote(entry)} {component.args or ''}".rstrip(),
        component_name,
        version,
        str(entity.display_name or component.display_name or ""),
        str(entity.description or component.description or ""),
        snapshot_of(component, place, context),
        environments.local(component.environment, place, context),
        {"PYSPARK_SUBMIT_ARGS": _options(entity)},
        step_ports.inputs(entity, place, context),
        step_ports.outputs(entity, context),
        location=place.location,
    )


def _options(entity: Any) -> str:
    """Return the options of spark-submit, which PySpark reads from a variable. Paths are relative to the code."""
    words = ["--master", "local[*]"]
    for key, value in (entity.conf or {}).items():
        if not key.startswith(_OF_CLUSTER):
            words += ["--conf", f"{key}={plain(value)}"]
    for option in ("py_files", "jars", "files", "archives"):
        if files := getattr(entity.component, option):
            words += [f"--{option.replace('_', '-')}", ",".join(files)]
    return shlex.join([*words, "pyspark-shell"])
