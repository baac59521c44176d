"""Read a pipeline or a command job in YAML."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from allranks.contract.templating import PRIMITIVES, Primitive
from allranks.errors import InputError, Level, Location, Problem, Rule
from allranks.sdk import (
    bounded_yaml,
    component_job,
    internals,
    spec_files,
    specs,
    validation_errors,
    yaml_lines,
)
from allranks.sdk.component_job import ComponentFile
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.request import NOT_RUN, not_run
from allranks.sdk.schema_unions import MISSING_KEY
from allranks.sdk.suppressions import remaining
from allranks.sdk.unsendable import bound_counts, count_problem
from allranks.sdk.validation_errors import described, refused, type_of, unknown_key
from allranks.sdk.yaml_lines import YamlText
from allranks.secrets import quoted


@dataclass(frozen=True)
class YamlFile:
    """A YAML file that describes a job.

    warnings: about parts that azure-ai-ml drops; filled when the job is built
    """

    text: YamlText
    warnings: list[Problem] = field(default_factory=list)

    def inputs(self) -> dict[str, str | None]:
        """Return the types of the pipeline's inputs by name; None for an input with only a value."""
        inputs = self.text.tree.get("inputs")
        return {name: _type(value) for name, value in inputs.items()} if isinstance(inputs, dict) else {}

    def given(self, name: str) -> Primitive | None:
        """Return the value of an input in the file, if it is a plain value."""
        value = self.text.tree["inputs"][name]
        value = value.get("value") if isinstance(value, dict) else value
        return value if isinstance(value, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Primitive]]) -> Any:
        """Return the SDK's job with these values (type and value) for its inputs.

        Raise InputError if the SDK rejects the file.
        """
        overrides = [self._override(name, kind, value) for name, (kind, value) in values.items()]
        misspelt = self._misspelt(overrides)
        files = (*_missing_components(self.text), *_environment_files(self.text))
        problems = list(dict.fromkeys((*_shapes(self.text), *files, *misspelt, *self.text.warnings)))
        self.warnings[:] = [problem for problem in problems if problem.level is Level.WARNING]
        if len(problems) > len(self.warnings):
            raise InputError.of(problems)
        try:
            return self._load(overrides)
        except InputError:
            raise
        except Exception as error:
            problems = [*_dangling(self.text), *_bound_counts(self.text), *_date_versions(self.text)]
            problems = problems or _refused(self.text, self._explained(error, overrides))
            raise InputError.of((*problems, *self.warnings)) from None

    def location(self, path: str) -> Location | None:
        """Return the first line of the node at this path, if it is in this file."""
        key = ".".join(f"jobs.{name}" for name in path.split("."))
        line = self.text.lines.get(key, 1 if "jobs" not in self.text.tree else None)
        return Location(shown(self.text.path), line) if line else None

    def _explained(self, error: Exception, overrides: list[dict[str, Any]]) -> Exception:
        """Return a better error. The SDK only explains an error if every job has a type, whose default is command."""
        untyped = [name for name, job in self.text.jobs.items() if isinstance(job, dict) and "type" not in job]
        if untyped and "Not supported pipeline job type" in str(error):
            try:
                self._load([*overrides, *({f"jobs.{name}.type": "command"} for name in untyped)])
            except Exception as other:
                return other
        return error

    def _load(self, overrides: list[dict[str, Any]]) -> Any:
        return internals.load_job(source=str(self.text.path), params_override=overrides)

    def _misspelt(self, overrides: list[dict[str, Any]]) -> list[Problem]:
        """Report misspelt keys, some of which the SDK ignores."""
        keys = list(validation_errors.misspelt(f"{type_of(self.text.tree, 'job')} job", self.text.tree))
        problems = [unknown_key(self.text.where(key), meant) for key, meant in keys]
        with contextlib.suppress(Exception):  # the SDK's errors have no common class
            if problems:
                self._load(overrides)
                return list(remaining(Rule.named("ignored-key").mark(problems)))
        return problems

    def _override(self, name: str, kind: str, value: Primitive) -> dict[str, Any]:
        if kind in PRIMITIVES:
            return {f"inputs.{name}": value}
        entry = self.text.tree["inputs"][name]
        return {f"inputs.{name}": {**(entry if isinstance(entry, dict) else {"type": kind}), "path": value}}


def read(path: Path) -> YamlFile | ComponentFile:
    """Read a file with a job, or with a command or parallel component, which becomes a job of one step.

    Raise InputError if it is not YAML, or contains neither.
    """
    text = yaml_lines.parse(path)
    if spec_files.kind_of(text.tree) is spec_files.Kind.COMPONENT:
        kind = type_of(text.tree, "component")
        if kind in ("command", "parallel"):
            return component_job.read(path)
        found, expected = "it describes a pipeline component, not a job", "a job, such as a pipeline that uses it"
        if kind != "pipeline":
            found = f"it describes a component of type {kind}, which the local engine does not run yet"
            expected = "a job, a command or parallel component, or a pipeline component in a pipeline"
        raise InputError(Problem(shown(path), found, expected))
    kind = type_of(text.tree, "job")
    if "type" not in text.tree and ("jobs" in text.tree or kind == "sweep"):
        found = "it has jobs, but no type" if "jobs" in text.tree else "it describes a sweep, but it has no type"
        missing = "type: pipeline" if "jobs" in text.tree else "type: sweep"
        raise InputError(Problem(shown(path), found, missing, f"add the line {missing}"))
    if kind not in ("automl", "pipeline", "command", "spark", "sweep"):
        key = "type" if "type" in text.tree else "$schema"
        raise InputError(not_run(text.where(key), NOT_RUN.get(kind, f"a job of type {kind}")))
    component = text.tree.get("component")
    if kind == "pipeline" and "jobs" not in text.tree and isinstance(component, str):
        inner = text.path.parent / component.removeprefix("file:")
        if os.path.isfile(inner):
            yaml_lines.parse(inner)
        elif not is_remote(component):
            expected = "a path, relative to this file"
            raise InputError(Problem(text.where("component"), f"{component} does not exist", expected))
    elif kind == "pipeline" and not isinstance(text.tree.get("jobs"), dict):
        raise InputError(Problem(text.where("jobs"), "the pipeline has no jobs", "at least one job"))
    return YamlFile(text)


def _type(value: Any) -> str | None:
    """Return the declared type of an input. The SDK treats an input with only a path as a folder."""
    if not isinstance(value, dict) or "value" in value:
        return None
    return str(value.get("type", "uri_folder"))


_WHOLE_NUMBERS = (
    *("resources.instance_count", "distribution.process_count_per_instance"),
    *("limits.max_total_trials", "limits.max_concurrent_trials"),
)


def _shapes(text: YamlText) -> Iterator[Problem]:
    """Report values whose shape the SDK ignores, rounds, or reports without the place or the allowed shape."""
    if not text.jobs:
        yield from _job_shapes(text, text.tree, "")
    for name, job in text.jobs.items():
        key = f"jobs.{name}"
        if not isinstance(job, dict):
            expected = "keys and values: a component or a command, inputs and outputs"
            yield Problem(text.where(key), described(job), expected, "write the step's keys below its name")
        elif job.get("type", "command") in ("command", "sweep"):
            yield from _job_shapes(text, job, f"{key}.")
        elif job["type"] == "parallel_for":
            yield from _item_shapes(job.get("items"), text.where(f"{key}.items"))


def _item_shapes(items: Any, place: str) -> Iterator[Problem]:
    each: Iterable[Any] = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for number, item in enumerate(each):
        if not isinstance(item, dict):
            expected = "keys and values: the inputs of the body that differ"
            yield Problem(place, f"item {number} is {described(item)}", expected, "write {INPUT: VALUE}")
        elif nothing := [str(name) for name, value in item.items() if value is None]:
            yield Problem(place, f"item {number} has no value for {', '.join(nothing)}", "values", "write them")


def _job_shapes(text: YamlText, job: Mapping[str, Any], prefix: str) -> Iterator[Problem]:
    variables = job.get("environment_variables")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        if isinstance(value, (list, dict)):
            place = text.where(f"{prefix}environment_variables.{name}")
            found = f"{described(value)}; Azure ML would set it to {quoted(str(name), str(value)[:60])}"
            yield Problem(place, found, "one value", "put the text in quotes")
    for key in _WHOLE_NUMBERS:
        section, _, name = key.partition(".")
        settings = job.get(section)
        value = settings.get(name) if isinstance(settings, dict) else None
        if isinstance(value, (float, bool, list, dict)):
            yield Problem(text.where(prefix + key), described(value), "a whole number")


def _missing_components(text: YamlText) -> Iterator[Problem]:
    """Report component files that do not exist or are not YAML, for which the SDK's message is unclear."""
    parsed: set[Path] = set()
    for name, job in text.jobs.items():
        component = job.get("component") if isinstance(job, dict) else None
        if not isinstance(component, str) or is_remote(component):
            continue
        path = text.path.parent / component.removeprefix("file:")
        if path in parsed:
            continue
        if not os.path.isfile(path):
            expected = "the path of a component's YAML file, relative to this file"
            yield Problem(text.where(f"jobs.{name}.component"), f"{component} does not exist", expected)
        else:
            parsed.add(path)
            try:
                yield from yaml_lines.parse(path).warnings
            except InputError as error:
                yield from error.problems


_STEP_OUTPUT = re.compile(r"\$\{\{\s*parent\.jobs\.([\w\-]+)\.outputs\.([\w\-]+)")
_IN_COMPONENT = re.compile(r"(.*?\.(?:component|trial))\.")
_PARENT = re.compile(r"\$\{\{\s*parent\.(inputs|jobs|outputs)\.([\w\-]+)")


def _environment_files(text: YamlText) -> Iterator[Problem]:
    """Report files of environments that are not YAML, for which the SDK does not say what is wrong."""
    for job in [text.tree, *text.jobs.values()]:
        environment = job.get("environment") if isinstance(job, dict) else None
        name = environment.get("conda_file") if isinstance(environment, dict) else None
        if isinstance(environment, str) and environment.startswith("file:"):
            name = environment.removeprefix("file:")
        if isinstance(name, str) and os.path.isfile(path := text.path.parent / name):
            try:
                bounded_yaml.read_values(path)
            except InputError as error:
                yield from error.problems


def _dangling(text: YamlText) -> Iterator[Problem]:
    """Report bindings to missing inputs, steps and outputs, for which the SDK's message is unclear."""
    sections = {name: text.tree.get(name) for name in ("inputs", "jobs", "outputs")}
    known = {name: section if isinstance(section, dict) else {} for name, section in sections.items()}
    for key, value in _text_values(text.tree["jobs"], "jobs") if "jobs" in text.tree else ():
        for kind, name in _PARENT.findall(value):
            if name not in known[kind]:
                noun = {"inputs": "input of the pipeline", "jobs": "step", "outputs": "output of the pipeline"}[kind]
                names = ", ".join(map(str, known[kind]))
                expected = f"one of {names}" if names else f"the pipeline has no {kind}"
                yield Problem(text.where(key), f"{value} refers to an unknown {noun}", expected)
        for name, output in _STEP_OUTPUT.findall(value):
            outputs = _declared_outputs(known["jobs"].get(name))
            if outputs is not None and output not in outputs:
                expected = f"one of {', '.join(map(str, outputs))}" if outputs else f"step {name} has no outputs"
                yield Problem(text.where(key), f"{value} refers to an unknown output of step {name}", expected)


def _bound_counts(text: YamlText) -> Iterator[Problem]:
    """Report bindings as numbers of instances or processes, for which the SDK's message is about another kind of
    job."""
    for prefix, node in [(f"jobs.{name}.", job) for name, job in text.jobs.items()] or [("", text.tree)]:
        if isinstance(node, dict) and "component" not in node:
            for keys, value in bound_counts(node):
                yield count_problem(text.where(f"{prefix}{'.'.join(keys)}"), value)


def _date_versions(text: YamlText) -> Iterator[Problem]:
    """Report versions that YAML reads as dates. The SDK's message about them names no key."""
    for key, written in text.unquoted.items():
        if key.endswith(".version") and isinstance(text.value(key), date):
            yield refused(text.where(key), key, text.value(key), "a text", written)


def _declared_outputs(job: Any) -> dict[str, Any] | None:
    """Return the outputs that a step declares; None if its component declares them."""
    if not isinstance(job, dict) or "component" in job or job.get("type", "command") != "command":
        return None
    outputs = job.get("outputs") or {}
    return outputs if isinstance(outputs, dict) else None


def _text_values(tree: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _text_values(value, f"{key}.{name}")
    elif isinstance(tree, str):
        yield key, tree


def _refused(text: YamlText, error: Exception) -> list[Problem]:
    details = validation_errors.messages_of(error)
    others = [key.rpartition(".")[0] for key, message in details if _is_other_kind(text, key, message)]
    if others and len(others) == len(details):
        # For an invalid step with a command or a Spark script, the SDK only reports the missing component.
        details = [
            (f"{job}.{name}", message)
            for job in others
            for name, message in validation_errors.of_step(text.value(job) or {}, text.path.parent)
        ] or details
    # A job has a command or a component. For an invalid command, the SDK also reports the missing component.
    likely = [(key, message) for key, message in details if not _is_other_kind(text, key, message)] or details
    files = {key: path for key, _ in likely if (path := _component_file(text, key))}
    of_files = [problem for path in dict.fromkeys(files.values()) for problem in _component_problems(path)]
    rest = likely if not of_files else [each for each in likely if each[0] not in files]
    return of_files + [_problem(text, key, message, error) for key, message in rest]


def _component_file(text: YamlText, key: str) -> Path | None:
    """Return the file of the component that contains a key such as ``jobs.train.component.inputs.lr``."""
    match = _IN_COMPONENT.match(key)
    component = text.value(match[1]) if match else None
    path = text.path.parent / component.removeprefix("file:") if isinstance(component, str) else None
    return path if path and os.path.isfile(path) else None


def _component_problems(path: Path) -> tuple[Problem, ...]:
    try:
        specs.load(Path(shown(path)))
    except InputError as error:
        return error.problems
    return ()


def _problem(text: YamlText, key: str, message: str, error: Exception) -> Problem:
    at = text.where(key)
    name = key.rpartition(".")[2]
    section, _, port = key.partition(".")
    port = port.partition(".")[0]
    if section == "inputs" and _type(text.value(f"inputs.{port}")) in PRIMITIVES:
        expected = "in a job a literal is its value alone"
        return Problem(text.where(f"inputs.{port}"), "it declares a type", expected, f"write {port}: VALUE")
    if message == "Unknown field.":
        return unknown_key(at, validation_errors.similar(f"{type_of(text.tree, 'job')} job", key, text.tree))
    if "node name should be" in message:
        expected = "lower-case letters, digits and _, beginning with a letter or _"
        return Problem(at, f"{name!r} cannot be the name of a step", expected, "rename it")
    value = text.value(key)
    if name == "code" and isinstance(value, str) and is_remote(value):
        fix = "get a copy, and use its path as the component's code"
        return Problem(at, f"{value} is not on this machine", "a local folder", fix)
    if value is None and not validation_errors.is_own(error) and not message.endswith(validation_errors.MISSING_FILE):
        message = validation_errors.one_line(error)
    return refused(at, key, value, message, text.unquoted.get(key))


def _is_other_kind(text: YamlText, key: str, message: str) -> bool:
    job, _, last = key.rpartition(".")
    step = text.value(job)
    is_own = isinstance(step, dict) and ("command" in step or step.get("type") == "spark")
    return message == MISSING_KEY and last == "component" and is_own
