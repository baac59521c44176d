"""Convert the REST body of a job, as in Azure ML's management API, to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Plan
from allranks.plan.reader import pipeline
from allranks.plan.reader.rest import command_job, pipeline_job
from allranks.plan.reader.rest.assets import Assets
from allranks.sdk import complaints, session

__all__ = ["Assets", "read_rest"]

_KINDS = {"Pipeline": pipeline_job.read, "Command": command_job.read}


def read_rest(body: Mapping[str, Any], assets: Assets, snapshots: Path) -> Plan:
    """Return the plan of a pipeline or command job.

    body:      the job as sent with PUT or received with GET: a mapping with `properties`
    assets:    resolves the ids in the body
    snapshots: the folder to which code is copied; it is created if necessary

    A body has no types for the inputs of the pipeline itself. They have the types of the ports that they are bound to.
    Raise InputError, with all problems, if the body cannot be read or the local engine cannot run it.
    """
    name, properties = str(body.get("name") or "job"), body.get("properties")
    if not isinstance(properties, Mapping):
        raise InputError(Problem(f"job {name}", "the body has no properties", "a job as Azure ML's REST API takes it"))
    kind = str(properties.get("jobType"))
    if kind not in _KINDS:
        found = f"a job of type {kind} is not yet run by the local engine"
        raise InputError(Problem(f"job {name}, key jobType", found, " or ".join(_KINDS)))
    with session.session(client=False):
        try:
            job = _KINDS[kind](name, properties, assets)
        except InputError:
            raise
        except Exception as error:
            # Any exception of the SDK means that it cannot read the body.
            message = complaints.one_line(error) or type(error).__name__
            raise InputError(Problem(f"job {name}", f"the SDK cannot read the body: {message}")) from error
        return pipeline.read(job, snapshots)
