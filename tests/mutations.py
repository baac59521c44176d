# ruff: noqa: RUF005
"""Random mutations of YAML files: of their keys and values, and of their text."""

from __future__ import annotations

import copy
import datetime
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import yaml
from hypothesis import strategies as st

# fmt: off
PLAIN = (
    None, True, False, 0, -1, 2, 10**9, 10**30, 1.5, -1e308, float("nan"), float("inf"), datetime.date(2026, 1, 31),
)
TEXTS = (
    ("", " ", "\n", "\0", "x" * 5_000, "\u2028é🙂\x1b[1m", "null", "1e5", "-", "*", "&a", "{{", "%", "$(x)", "a: b")
    + ("${{parent.inputs.data}}", "${{parent.inputs.}}", "${{parent.jobs.prepare.outputs.out}}",
    "${{parent.jobs.prepare}}",)
    + ("${{parent.outputs.model}}", "${{inputs.data}}", "${{outputs.out}}", "${{search_space.lr}}", "${{", "}}", "$[[")
    + ("$[[--x ${{inputs.data}}", "a${{parent.inputs.${{parent.inputs.data}}}}b", "${{parent.jobs.a.outputs.b}}/../c")
    + ("..", "../../outside", "/etc/passwd", "/", ".", "~", "~nobody/x", "./train.yml", "../train.yml", "src/main.py")
    + ("file:../../x.yml", "file:", "azureml:", "azureml:x", "azureml:x:1", "azureml:x@latest", "azureml:x:1:2@y")
    + ("azureml://registries/r/components/c/versions/1", "azureml://datastores/d/paths/p/../..", "azureml://jobs")
    + ("https://127.0.0.1:9/x.yml", "http://[", "git+https://127.0.0.1:9/x", "wasbs://c@a.b/x", "abfss://", "://") + (
    "command", "pipeline", "sweep", "parallel", "spark", "uri_folder", "mltable", "custom_model", "boolean",
    "pytorch",)
)
NESTED = (
    ([], {}, [[]], [None], ["x"] * 500, {"": None}, {"a": {"b": 1}}, [{"lr": 1}] * 3, {1: 2, None: 3})
    + ({"type": "command"}, {"type": "uri_folder", "path": "../../x"}, {"path": None}, {"type": []}, {"value": "x"})
    + ({f"k{number}": number for number in range(100)}, reduce(lambda inner, _: [inner], range(60), ["deep"]))
)
PAYLOADS: tuple[Any, ...] = PLAIN + TEXTS + NESTED
KEYS: tuple[Any, ...] = (
    ("", " ", "é", "x" * 300, "a.b", "a b", "../x", "__class__", "self", "_type", "${{x}}", "data\n", 3, 1.5, None,
    True,) + ("type", "name", "version", "$schema", "command", "component", "jobs", "inputs", "outputs", "path",
    "mode", "value",)
    + ("default", "min", "max", "enum", "optional", "code", "environment", "image", "build", "conda_file", "resources")
    + ("instance_count", "distribution", "process_count_per_instance", "limits", "timeout", "search_space", "trial",
    "task",) + ("entry_script", "condition", "true_block", "false_block", "body", "items", "mapping", "settings",
    "default_compute",) + ("environment_variables", "identity", "services", "queue_settings", "additional_includes",
    "is_deterministic", "tags",)
)
SNIPPETS = (
    "\t", "\0", "\ufeff", "\n---\n", "\n...\n", "\n- x\n", "\n? [a, b]\n", ": ", " #", "\n<<: {a: 1}\n",
    "!!python/object:x ",
) + (
    "!!binary x", "!x ", "&a ", "*a", "[", "}", "'", '"', "|\n", ">-\n", "%YAML 9.9\n", "\r", "\x85", "\udc80", "@",
    "`",
)
# fmt: on


@dataclass(frozen=True)
class Mutation:
    """kind: a function of this module; place, other: numbers that select where it applies; value: its payload"""

    kind: str
    place: int
    other: int
    value: int


def _drop(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    del at[0][at[1]]


def _rename(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    if isinstance(at[0], dict):
        items = [(KEYS[value % len(KEYS)] if key == at[1] else key, each) for key, each in at[0].items()]
        at[0].clear()
        at[0].update(items)


def _replace(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    at[0][at[1]] = copy.deepcopy(PAYLOADS[value % len(PAYLOADS)])


def _add(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    inner = at[0][at[1]]
    payload = copy.deepcopy(PAYLOADS[value % len(PAYLOADS)])
    if isinstance(inner, list):
        inner.append(payload)
    elif isinstance(inner, dict):
        inner[KEYS[value // len(PAYLOADS) % len(KEYS)]] = payload


def _nest(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    at[0][at[1]] = [at[0][at[1]]] if value % 2 else {KEYS[value % len(KEYS)]: at[0][at[1]]}


def _graft(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    at[0][at[1]] = copy.deepcopy(other[0][other[1]])


def _alias(at: tuple[Any, Any], other: tuple[Any, Any], value: int) -> None:
    """The dumped file has an anchor and an alias; if the other place is above, the value contains itself."""
    at[0][at[1]] = other[0][other[1]]


def _cut(text: str, place: int, value: int) -> str:
    return text[: place % (len(text) + 1)]


def _insert(text: str, place: int, value: int) -> str:
    index = place % (len(text) + 1)
    return text[:index] + SNIPPETS[value % len(SNIPPETS)] + text[index:]


def _repeat_line(text: str, place: int, value: int) -> str:
    lines = text.splitlines(keepends=True) or [""]
    index = place % len(lines)
    return "".join([*lines[: index + 1], *lines[index : index + 1 + value % 3], *lines[index + 1 :]])


def _drop_line(text: str, place: int, value: int) -> str:
    lines = text.splitlines(keepends=True) or [""]
    del lines[place % len(lines)]
    return "".join(lines)


OF_TREES = {each.__name__: each for each in (_drop, _rename, _replace, _add, _nest, _graft, _alias)}
OF_TEXTS = {each.__name__: each for each in (_cut, _insert, _repeat_line, _drop_line)}

_NUMBERS = st.integers(0, 1 << 16)
MUTATIONS = st.tuples(
    st.lists(st.builds(Mutation, st.sampled_from(list(OF_TREES)), _NUMBERS, _NUMBERS, _NUMBERS), max_size=4),
    st.lists(st.builds(Mutation, st.sampled_from(list(OF_TEXTS)), _NUMBERS, _NUMBERS, _NUMBERS), max_size=1),
).filter(lambda both: bool(both[0] or both[1]))


def mutated(text: str, of_tree: list[Mutation], of_text: list[Mutation]) -> bytes:
    """Return the text of a YAML file after the mutations."""
    tree = {"": yaml.load(text, Loader=yaml.CSafeLoader)}
    for mutation in of_tree:
        places = list(_places(tree))
        at, other = (places[number % len(places)] for number in (mutation.place, mutation.other))
        OF_TREES[mutation.kind](at, other, mutation.value)
        tree.setdefault("", None)
    text = yaml.safe_dump(tree[""], sort_keys=False, allow_unicode=True)
    for mutation in of_text:
        text = OF_TEXTS[mutation.kind](text, mutation.place, mutation.value)
    return text.encode("utf-8", "surrogateescape")


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container at any depth with each key or index in it, once."""
    seen, waiting = set(), [tree]
    while waiting:
        container = waiting.pop()
        if id(container) in seen:
            continue
        seen.add(id(container))
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        yield from zip(itertools.repeat(container), keys)
        waiting += [container[key] for key in keys if isinstance(container[key], (dict, list))]
