"""Find settings that cannot be sent: a binding for a whole group of settings, or a value of another type."""

from collections.abc import Iterator, Mapping
from typing import Any

from allranks.errors import Problem, StepPlace, finding
from allranks.sdk import internals, validation_errors
from allranks.sdk.entity_ports import flat, is_port, plain

_SECTIONS = frozenset(
    ["distribution", "environment_variables", "identity", "limits", "queue_settings", "resources", "retry_settings"]
)
_WRONG_TYPES: dict[str, tuple[type, ...]] = {**dict.fromkeys(_SECTIONS, (list, tuple)), "environment": (dict, list)}
_NEVER_BOUND = ("early_termination", "partition_keys")
_BOUND_AS_TEXT = ("logging_level", "mini_batch_size")
_REMOVE = "correct or remove the setting"
_SENT_AS_TEXT = ("display_name", "environment_variables", "properties", "tags")
_DROPPED = ("description",)
_OF_COMPONENTS = ("code", "command", "distribution", "environment", "environment_variables", "resources", "tags")
_BOUND_ON_STEPS = {
    ("resources", "instance_count"): "number",
    ("distribution", "process_count_per_instance"): "number",
    ("resources", "instance_type"): "text",
    ("resources", "shm_size"): "text",
}
"""Settings in which only steps may have a binding. For a text, components may have one that is a text."""
_OF_PORTS = ("mode", "name", "type", "version")


def problems(node: Any, place: StepPlace) -> Iterator[Problem]:
    """Yield a problem for each setting of a node, of its component and of its ports that cannot be read."""
    if not isinstance(node, internals.BaseNode):
        return
    for name, value in vars(node).items():
        key = name.lstrip("_")
        if isinstance(value, _WRONG_TYPES.get(key, ())):
            expected = "a text" if key == "environment" else "a mapping"
            yield Problem(place.key(key), _type(value), expected)
        elif key in _SECTIONS and internals.is_binding(value):
            yield finding("bound-section", place.key(key), f"{_text(value)}, in place of keys and values", "a mapping")
        elif key in _NEVER_BOUND and internals.is_binding(value):
            yield _refused(place.key(key), value)
        elif key in _BOUND_AS_TEXT and internals.is_binding(value) and not isinstance(value, str):
            found = "a binding as an object, which azure-ai-ml cannot send"
            yield Problem(place.key(key), found, "a value", f'write it as a text: "{_text(value)}"')
        else:
            yield from _section_problems(key, value, place)
    for name, value in getattr(internals.component(node), "__dict__", {}).items():
        key = name.lstrip("_")
        if key in _OF_COMPONENTS and internals.is_binding(value) and (key != "command" or not isinstance(value, str)):
            fix = "write the value, or bind the setting on the step"
            yield Problem(place.key(key), f"{_text(value)}, a binding, in the component", "a value", fix)
    component = internals.component(node)
    sections = {key: getattr(component, key, None) for key in ("resources", "distribution")}
    yield from (count_problem(place.key(".".join(keys)), value) for keys, value in bound_counts(sections))
    yield from _port_problems(node, place)


def refused(error: Exception, place: StepPlace) -> Iterator[Problem]:
    """Yield the problems of a node that the SDK refuses to send."""
    if not validation_errors.is_own(error):
        yield Problem(str(place), f"azure-ai-ml cannot send it: {validation_errors.one_line(error)}", "", _REMOVE)
        return
    for key, message in validation_errors.messages_of(error):
        yield Problem(place.key(key) if key else str(place), "azure-ai-ml cannot send it", message, _REMOVE)


def unsent(node: Any, place: StepPlace) -> Iterator[Problem]:
    """Yield a warning for each binding in a setting of a node that azure-ai-ml drops or cannot send."""
    for name, value in vars(node).items():
        key = name.lstrip("_")
        parts = value.values() if isinstance(value, dict) else (value,)
        if key in _SENT_AS_TEXT and any(internals.is_binding(each) and not isinstance(each, str) for each in parts):
            found = "azure-ai-ml cannot send a binding as an object here"
            yield finding("unsent-binding", place.key(key), found, "", "write bindings as texts")
        elif key in _DROPPED and internals.is_binding(value):
            found = f"{_text(value)}, a binding, which azure-ai-ml does not send"
            yield finding("unsent-binding", place.key(key), found)


def _section_problems(key: str, value: Any, place: StepPlace) -> Iterator[Problem]:
    """Yield a problem for each expression in a setting, or a group of settings, that is not a binding to one input."""
    parts = value if isinstance(value, dict) else getattr(value, "__dict__", {}) if key in _SECTIONS else {}
    for where, each in ((key, value), *((f"{key}.{str(name).lstrip('_')}", each) for name, each in parts.items())):
        if not internals.is_binding(each):
            continue
        if where == "queue_settings.job_tier":
            yield _refused(place.key(where), each)
        elif isinstance(each, internals.PipelineExpression):
            try:
                str(each)
            except Exception as error:  # of the SDK, without a common class
                found, fix = validation_errors.one_line(error), "bind it to one input, and compute the value before"
                yield Problem(place.key(where), found, "a value or a binding", fix)


def _port_problems(node: Any, place: StepPlace) -> Iterator[Problem]:
    """Yield a problem for each value that is not a port, and for each binding as the mode, type or name of a port."""
    for side in ("inputs", "outputs"):
        for name, port in flat(getattr(node, side)):
            where = f"{side}.{name}"
            if not is_port(port):
                yield Problem(place.key(where), _type(port), "a value, a path or a binding")
                continue
            data = internals.data(port)
            own = {} if internals.is_binding(data) else {**getattr(data, "__dict__", {}), **vars(port)}
            for key in _OF_PORTS:
                if internals.is_binding(value := own.get(f"_{key}") or own.get(key)):
                    yield _refused(place.key(f"{where}.{key}"), value)


def _refused(where: str, value: Any) -> Problem:
    return Problem(where, f"{_text(value)}, a binding, which azure-ai-ml refuses", "a value", "write the value")


def _type(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _text(value: Any) -> str:
    try:
        return str(plain(value))
    # The SDK refuses some expressions when they are written as texts.
    except Exception:
        return "an expression"


def bound_counts(sections: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the keys, with their values, of bindings that azure-ai-ml refuses in a component.

    sections: resources and distribution, as mappings or objects of azure-ai-ml
    """
    for (section, name), kind in _BOUND_ON_STEPS.items():
        settings = sections.get(section)
        value = settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)
        if "${{" in str(value) and not (kind == "text" and isinstance(value, str)):
            yield (section, name), value


def count_problem(where: str, value: Any) -> Problem:
    """Return the error of a binding that `bound_counts` yielded."""
    return finding("count-binding", where, f"{value}, a binding", "a value")
