"""Read a YAML file as data, and find the lines of its keys."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Level, Problem, finding
from allranks.sdk import bounded_yaml
from allranks.sdk.paths import shown
from allranks.sdk.suppressions import remaining

_OTHER_NUMBER = re.compile(r"[-+]?(0[0-7_]+|\d[\d_]*(:\d+)+(\.\d*)?)")
"""An octal number, and one in base 60."""
_VARIABLES = "environment_variables"
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_PLACE = re.compile(r"(?P<owner>step (?P<step>\S+), |.*, )?key (?P<key>\S+) \((?P<file>.+?)(?P<line>:\d+)?\)")


def line_of(path: Path, *keys: str) -> int:
    """Return the line, from 1, of a nested key; that of its innermost existing parent if it is missing."""
    text = bounded_yaml.read(path)
    bounded_yaml.check(text)
    node, line = yaml.compose(text, Loader=bounded_yaml.LOADER), 1
    for key in keys:
        if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
            continue
        if not isinstance(node, yaml.MappingNode):
            break
        item = next(((key_node, value) for key_node, value in node.value if key_node.value == key), None)
        if item is None:
            break
        line, node = item[0].start_mark.line + 1, item[1]
    return line


def at(path: Path, *keys: str) -> str:
    """Return file:line of a nested key."""
    return f"{path}:{line_of(path, *keys)}"


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the file's content. Raise InputError if it cannot be read or is not a mapping in YAML."""
    content = bounded_yaml.read_values(path)
    if not isinstance(content, dict):
        raise InputError(Problem(str(path), f"{type(content).__name__}", "keys and values", "correct the file"))
    return content


@dataclass(frozen=True)
class YamlText:
    """The content of a file.

    tree:     the content; for a repeated key, with the last value
    lines:    the line of each key, such as ``jobs.train.inputs.lr`` or ``inputs.kind.enum.0``, from 1
    warnings: about repeated keys, and values that YAML does not read as written
    unquoted: the raw text of values that YAML does not read as text, such as 2026-01-31 or no, by key
    """

    path: Path
    tree: dict[str, Any]
    lines: dict[str, int]
    warnings: tuple[Problem, ...] = ()
    unquoted: Mapping[str, str] = field(default_factory=dict)

    @property
    def jobs(self) -> dict[str, Any]:
        """The steps of a pipeline; empty for other files."""
        jobs = self.tree.get("jobs")
        return jobs if isinstance(jobs, dict) else {}

    def place(self, key: str = "") -> str:
        """Return the file and the line of a key, or of its innermost existing parent."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return f"{shown(self.path)}:{self.lines[key]}" if key else shown(self.path)

    def where(self, key: str) -> str:
        """Return the place of a key: ``step train, key resources.instance_count (pipeline.yml:12)``."""
        section, _, rest = key.partition(".")
        step, _, key_of_step = rest.partition(".")
        if section == "jobs" and step:
            return f"step {step}{f', key {key_of_step}' if key_of_step else ''} ({self.place(key)})"
        return f"key {key} ({self.place(key)})" if key else self.place()

    def value(self, key: str) -> Any:
        """Return the value at a key; None if the file has none there."""
        value: Any = self.tree
        for part in key.split("."):
            if isinstance(value, list) and part.isdecimal():
                value = value[int(part)] if int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value

    def scalar(self, key: str) -> str | int | float | bool | None:
        """Return the scalar at a key; None if the file has none there."""
        value = self.value(key)
        return value if isinstance(value, (str, int, float, bool)) else None


def parse(path: Path, *, may_be_empty: bool = False) -> YamlText:
    """Read a file. Raise InputError if it is not a mapping, or has keys that are not strings.

    may_be_empty: whether to accept a file without keys, such as one with comments only
    """
    try:
        text = bounded_yaml.read(path)
        bounded_yaml.check(text)
        loader = bounded_yaml.LOADER(text)
        try:
            root = loader.get_single_node()
            tree = loader.construct_document(root) if root else None
        finally:
            loader.dispose()
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise InputError(bounded_yaml.problem(path, error)) from None
    if tree is None and may_be_empty:
        return YamlText(path, {}, {})
    if not isinstance(tree, dict):
        found = "it is empty" if tree is None else f"it is a {'list' if isinstance(tree, list) else 'single value'}"
        raise InputError(Problem(shown(path), found, "a mapping of keys to values, such as type: pipeline"))
    if str(tree.get("type")).startswith("DistributedComponent"):
        found = "it is a DistributedComponent of the retired SDK v1"
        fix = f'pip install "allranks[migrate]", then: allranks migrate {shown(path)}'
        raise InputError(Problem(shown(path), found, "a command component", fix))
    lines: dict[str, int] = {}
    unquoted: dict[str, str] = {}
    problems = remaining(_walk(root, "", lines, unquoted, shown(path)))
    if any(problem.level is Level.ERROR for problem in problems):
        raise InputError.of(problems)
    return YamlText(path, tree, lines, tuple(problems), unquoted)


def _walk(
    node: yaml.Node, prefix: str, lines: dict[str, int], unquoted: dict[str, str], file: str
) -> Iterator[Problem]:
    if isinstance(node, yaml.SequenceNode):
        for number, inner in enumerate(node.value):
            lines.setdefault(f"{prefix}.{number}", inner.start_mark.line + 1)
            yield from _walk(inner, f"{prefix}.{number}", lines, unquoted, file)
    if isinstance(node, yaml.ScalarNode) and node.tag != _TEXT:
        unquoted[prefix] = node.value
        if _is_changed(node, prefix):
            found = f"{node.value}, which YAML reads as {yaml.safe_load(node.value)}"
            fix = f'put it in quotes: "{node.value}", or write what is meant'
            yield finding("unquoted-value", f"{file}:{node.start_mark.line + 1}, key {prefix}", found, "", fix)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        place = f"{file}:{line}"
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (_TEXT, _MERGE):
            name = key.value if isinstance(key, yaml.ScalarNode) else "a key of several values"
            yield Problem(place, f"YAML does not read the key {name} as text", "a text", f'put it in quotes: "{name}"')
            continue
        name = f"{prefix}.{key.value}" if prefix else str(key.value)
        if key.value in seen and key.tag != _MERGE:
            yield finding("repeated-key", place, f"duplicate key {name}", "each name once", "rename one of the two")
        seen.add(key.value)
        lines.setdefault(name, line)
        yield from _walk(value, name, lines, unquoted, file)


def _is_changed(node: yaml.ScalarNode, key: str) -> bool:
    """Return whether YAML 1.1 reads a number or a boolean that differs from the text in the file."""
    section, kind = key.rpartition(".")[0].rpartition(".")[2], node.tag.rpartition(":")[2]
    if kind == "bool":
        return section in ("inputs", _VARIABLES) and node.value.lower() not in ("true", "false")
    if kind == "float" and section == _VARIABLES:
        return bool(str(yaml.safe_load(node.value)) != node.value)
    return kind in ("int", "float") and key != "version" and _OTHER_NUMBER.fullmatch(node.value) is not None


def with_key_lines(problems: Iterable[Problem], source: str) -> list[Problem]:
    """Return the problems, each with the line of the key that it names, if the file is YAML and has the key.

    source: the file of the pipeline
    """
    problems = list(problems)
    path = Path(source)
    if path.suffix.lower() not in (".yml", ".yaml") or not any(_PLACE.fullmatch(each.where) for each in problems):
        return problems
    try:
        text = parse(path)
    except InputError:
        return problems
    return [replace(problem, where=_with_key_lines(problem.where, text)) for problem in problems]


def _with_key_lines(where: str, text: YamlText) -> str:
    match = _PLACE.fullmatch(where)
    if match is None or match["file"] != shown(text.path):
        return where
    root = f"jobs.{match['step'].replace('.', '.jobs.')}" if match["step"] and "jobs" in text.tree else ""
    keys = [f"{root}.{section}{match['key']}".lstrip(".") for section in ("", "trial.", "task.")]
    key = next((key for key in keys if key in text.lines), keys[0])
    while key and key != root and key not in text.lines:
        key = key.rpartition(".")[0]
    return f"{where[: match.end('file')]}:{text.lines[key]})" if key in text.lines else where
