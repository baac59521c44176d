"""Read a data transfer with task copy_data as a step whose command copies files. Other tasks do not run here."""

from __future__ import annotations

from typing import Any

from allranks.plan.graph import Step
from allranks.plan.ports import Input, Output
from allranks.plan.reader import registered_component, step_ports
from allranks.plan.reader.context import Context


def copy(name: str, entity: Any, context: Context) -> Step | None:
    """Return the step of a copy, or of a merge of several inputs."""
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    inputs, outputs = step_ports.inputs(entity, place, context), step_ports.outputs(entity, context)
    fails = entity.component.data_copy_mode == "fail_if_conflict"
    command = " && ".join(_copied(port, output, fails) for output in outputs for port in inputs)
    return Step(name, command, inputs=inputs, outputs=outputs, location=place.location)


def _copied(port: Input, output: Output, fails: bool) -> str:
    """Return the command that copies an input. fails: whether a file of another input must not be replaced"""
    source, to = f"${{{{inputs.{port.name}}}}}", f"${{{{outputs.{output.name}}}}}"
    if port.type == "uri_file":
        return f"cp {source} {to}{'' if output.type == 'uri_file' else '/'}"
    conflicts = f"same=$(cd {source} && find . -type f -exec test -e {to}/{{}} \\; -print)"
    refuse = '[ -z "$same" ] || { echo "in two inputs: $same" >&2; exit 1; }'
    return f"{f'{conflicts} && {refuse} && ' if fails else ''}cp -r {source}/. {to}/"
