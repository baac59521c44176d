"""Read a node that runs a function on mini-batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.plan.parallel import Parallel
from allranks.plan.reader import command_step
from allranks.plan.reader.command_step import setting
from allranks.plan.reader.context import Context, plain, settled, whole

_DEFAULTS = Parallel("", "")


def read(name: str, node: Any, context: Context) -> Step | None:
    """Return the step of a Parallel node. If its component is not on this machine, add problems to the context and
    return None."""
    step = command_step.read(name, node, context)
    if step is None:
        return None
    place, component = context.place(name), node.component

    def own(key: str) -> Any:
        value = getattr(node, key, None)  # the node is a mapping too, without its settings
        # The SDK has an empty mapping for a name that a node lacks. A comparison would make an expression of a binding.
        return setting(component, key) if value is None or (isinstance(value, dict) and not value) else value

    def number(value: Any, key: str, default: int | None) -> Any:
        count = whole(value, key, place, context)
        return default if count is None else count

    for key in ("mini_batch_size", "logging_level"):
        if "${{" in str(own(key)) and not isinstance(own(key), str):
            found = "a binding as an object, which azure-ai-ml cannot send"
            context.problems.append(Problem(place.key(key), found, "a value", f'write it as a text: "{own(key)}"'))
    task, retries = own("task"), own("retry_settings")
    level = settled(own("logging_level"), "logging_level", place, context)
    entry, arguments = (str(setting(task, key) or "") for key in ("entry_script", "program_arguments"))
    parallel = Parallel(
        entry_script=entry,
        input_data=str(plain(own("input_data")) or ""),
        # The SDK has 0 for a component without a size.
        mini_batch_size=number(own("mini_batch_size") or None, "mini_batch_size", None),
        partition_keys=tuple(map(str, own("partition_keys") or ())),
        max_concurrency=number(own("max_concurrency_per_instance"), "max_concurrency_per_instance", None),
        error_threshold=number(own("error_threshold"), "error_threshold", -1),
        mini_batch_error_threshold=number(own("mini_batch_error_threshold"), "mini_batch_error_threshold", -1),
        max_retries=number(setting(retries, "max_retries"), "retry_settings.max_retries", _DEFAULTS.max_retries),
        timeout=number(setting(retries, "timeout"), "retry_settings.timeout", _DEFAULTS.timeout),
        logging_level=str(level or _DEFAULTS.logging_level).upper(),
        append_row_to=str(plain(setting(task, "append_row_to")) or ""),
    )
    return replace(step, command=f"python {entry} {arguments}".strip(), parallel=parallel)
