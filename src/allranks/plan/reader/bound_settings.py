"""Settings of a node that hold a binding where azure-ai-ml has keys and values, or none: what it sends is what runs.

azure-ai-ml sends the binding in place of some groups of settings, drops some, and cannot send others. Which they are is
taken from the request that it makes of the node.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from allranks.errors import Problem
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Context, Place, plain, settled
from allranks.plan.rules import BOUND_SECTION, UNSENT_BINDING
from allranks.sdk import internals, validation_errors

_SECTIONS = frozenset(
    ["distribution", "environment_variables", "identity", "limits", "queue_settings", "resources", "retry_settings"]
)
_WRONG_TYPES: dict[str, tuple[type, ...]] = {**dict.fromkeys(_SECTIONS, (list, tuple)), "environment": (dict, list)}
_NEVER_BOUND = ("early_termination", "partition_keys")
_OF_COMPONENTS = ("code", "command", "distribution", "environment", "environment_variables", "resources", "tags")
_OF_PORTS = ("mode", "name", "type", "version")
_SENT_AS = {"compute": "computeId"}
_READ_ELSEWHERE = ("component", "environment", "inputs", "job_inputs", "job_outputs", "name", "outputs", "trial")


@contextlib.contextmanager
def replaced(node: Any, place: Place, context: Context) -> Iterator[None]:
    """Give the node the values of groups of settings that are bound to an input, for the block. Add a problem for each
    binding that cannot be used, and at the end a warning for each that azure-ai-ml drops or cannot send."""
    if not isinstance(node, internals.BaseNode):
        yield
        return
    known, unsent = len(context.problems), _unsent(node)
    component = internals.component(node)
    with contextlib.ExitStack() as restored:
        for owner in (node, component) if hasattr(component, "__dict__") else (node,):
            for name, value in [*vars(owner).items()]:
                key, is_bound = name.lstrip("_"), internals.is_binding(value)
                wrong = _WRONG_TYPES.get(key, ()) if owner is node else ()
                if isinstance(value, wrong) or (is_bound and (owner is node or key in _OF_COMPONENTS)):
                    restored.callback(vars(owner).update, {name: value})
                    vars(owner)[name] = _value(key, value, place, context, owner is node, key not in unsent)
        _check_ports(node, place, context)
        yield
    said = [problem.where for problem in context.problems[known:]]
    for key, (found, fix) in unsent.items():
        where = place.key(key)
        if not any(each == where or each.startswith(f"step {place.step}, key {key}.") for each in said):
            context.problems.append(UNSENT_BINDING.problem(where, found, "", fix))


def _value(key: str, value: Any, place: Place, context: Context, of_node: bool, is_sent: bool) -> Any:
    """Return what a setting has in place of a binding, or of a value of a wrong type."""
    text, expected, fix = _text(value), "a value", "write the value"
    if not internals.is_binding(value):
        found, expected, fix = _type(value), "a text" if key == "environment" else "a mapping", ""
    elif not of_node and key != "command":
        found, fix = f"{text}, a binding, in the component", "write the value, or bind the setting on the step"
    elif of_node and key in _NEVER_BOUND:
        found = f"{text}, a binding, which azure-ai-ml refuses"
    elif of_node and key in _SECTIONS:
        return _section(key, value, place, context) if is_sent else None
    else:
        return text if key in ("command", "environment") else value
    context.problems.append(Problem(place.key(key), found, expected, fix))
    return None


def _section(key: str, value: Any, place: Place, context: Context) -> Mapping[str, Any] | None:
    """Return keys and values that are bound as a whole. A text is read as JSON."""
    known = len(context.problems)
    section = settled(value, key, place, context)
    if isinstance(section, str):
        with contextlib.suppress(ValueError):
            section = json.loads(section)
    if isinstance(section, dict):
        context.problems.append(BOUND_SECTION.problem(place.key(key), f"{_text(value)}, in place of keys and values"))
        return section
    if len(context.problems) == known:
        found, expected = f"{_text(value)}, whose value is not an object in JSON", 'a value such as {"NAME": "VALUE"}'
        context.problems.append(Problem(place.key(key), found, expected, "give the input such a value"))
    return None


def _check_ports(node: Any, place: Place, context: Context) -> None:
    """Add a problem for what is no port, and for a binding as the mode, type or name of one."""
    for side in ("inputs", "outputs"):
        for name, port in step_ports.flat(getattr(node, side)):
            where = f"{side}.{name}"
            if not step_ports.is_port(port):
                context.problems.append(Problem(place.key(where), _type(port), "a value, a path or a binding"))
                continue
            data = internals.data(port)
            own = {} if internals.is_binding(data) else {**getattr(data, "__dict__", {}), **vars(port)}
            for key in _OF_PORTS:
                if internals.is_binding(value := own.get(f"_{key}") or own.get(key)):
                    found = f"{_text(value)}, a binding, which azure-ai-ml refuses"
                    context.problems.append(Problem(place.key(f"{where}.{key}"), found, "a value", "write the value"))


def _unsent(node: Any) -> dict[str, tuple[str, str]]:
    """Return the settings with bindings that azure-ai-ml drops or cannot send, each with what it does, and the fix."""
    held = {
        name: value
        for name, value in vars(node).items()
        if name.lstrip("_") not in _READ_ELSEWHERE and _holds_binding(value)
    }
    if not held:
        return {}
    request, unsent = _request(node), dict[str, tuple[str, str]]()
    for name, value in held.items():
        key = name.lstrip("_")
        sent = request.get(_SENT_AS.get(key, key)) if isinstance(request, dict) else None
        if isinstance(request, Exception):
            vars(node)[name] = None
            is_cause = not isinstance(_request(node), Exception)
            vars(node)[name] = value
            if is_cause or len(held) == 1:
                unsent[key] = f"azure-ai-ml cannot send it: {validation_errors.one_line(request)}", "write the value"
        elif _holds_binding(sent, objects_only=True):
            text = f'write it as a text: "{_text(value)}"' if internals.is_binding(value) else "write bindings as texts"
            unsent[key] = "azure-ai-ml cannot send a binding as an object here", text
        elif internals.is_binding(value) and "${{" not in str(sent):
            unsent[key] = f"{_text(value)}, a binding, which azure-ai-ml does not send", "write the value, or remove it"
    return unsent


def _request(node: Any) -> dict[str, Any] | Exception:
    try:
        request: dict[str, Any] = internals.node_request(node)
    # The SDK's errors have no common class; any of them means that it cannot send the node.
    except Exception as error:
        return error
    return request


def _holds_binding(value: Any, depth: int = 4, *, objects_only: bool = False) -> bool:
    if internals.is_binding(value):
        return not (objects_only and isinstance(value, str))
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    else:
        parts = list(vars(value).values()) if type(value).__module__.startswith("azure.ai.ml") else []
    return depth > 0 and any(_holds_binding(part, depth - 1, objects_only=objects_only) for part in parts)


def _type(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _text(value: Any) -> str:
    try:
        return str(plain(value))
    # The SDK refuses some expressions when they are written as texts.
    except Exception:
        return "an expression"
