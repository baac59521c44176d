"""Find the schedules that files declare.

A pipeline's Python file declares a schedule with a function without required parameters that is annotated to return a
`JobSchedule`, or with a module-level `JobSchedule`; `ml_client.schedules.begin_create_or_update` accepts it unchanged.
A YAML file declares one in the form of `az ml schedule create --file`.
"""

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from allranks.errors import InputError, Problem, Problems, did_you_mean, raise_any
from allranks.schedules.policy import Policy
from allranks.schedules.reading import read_trigger
from allranks.schedules.triggers import FREQUENCIES, Trigger
from allranks.sdk import bounded_yaml, internals, python_file, validation_errors, yaml_lines
from allranks.sdk.paths import is_remote, nearest, project_folder
from allranks.sdk.validation_errors import refused, unknown_key
from allranks.sdk.yaml_lines import YamlText

FOLDER = "pipelines"
"""The folder of a project whose files declare schedules."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")


@dataclass(frozen=True)
class Schedule:
    """A declared schedule.

    file:   the path that declares it, as given
    member: the function or variable of a Python file; "" for YAML
    entity: the JobSchedule of azure-ai-ml that declares it; None for a schedule of the ledger
    policy: in its tags
    """

    name: str
    display_name: str
    description: str
    trigger: Trigger
    file: str
    member: str = ""
    entity: Any = field(default=None, compare=False)
    policy: Policy = field(default_factory=Policy)

    @property
    def where(self) -> str:
        return f"{self.file}:{self.member}" if self.member else self.file


def find_schedules(target: Path | None = None, *, required: bool = True) -> tuple[Schedule, ...]:
    """Return the schedules of a file, or of the files in a folder, sorted by name.

    target:   default: the folder `pipelines` in the current folder or its nearest parent. In a folder, Python files are
              imported if their text contains JobSchedule, and YAML files are read if they have the keys `trigger` and
              `create_job`. Subfolders are ignored
    required: whether a project without a schedule is a problem

    Call it, and use the returned entities, inside of `allranks.sdk.session.session`. Raise InputError with the problems
    of all schedules, or if there is no schedule.
    """
    if target is None:
        if not required and not nearest(Path.cwd(), FOLDER, exists=Path.is_dir):
            return ()
        target = Path(os.path.relpath(project_folder(Path.cwd(), FOLDER, "name a file or a folder")))
    declarations, problems = list[Schedule](), Problems()
    for file in _files(target):
        with problems:
            declarations += _python(file) if file.suffix in python_file.SUFFIXES else _yaml(file)
    problems += _duplicates(declarations)
    raise_any(problems)
    if not declarations and required:
        expected = "a function that returns a JobSchedule, or a schedule's YAML"
        raise InputError(Problem(str(target), "it declares no schedule", expected, "see docs/how-to/schedules.md"))
    return tuple(sorted(declarations, key=lambda each: each.name))


def check_target(target: Path) -> None:
    """Raise InputError if a path is neither a folder nor a file that may declare schedules."""
    if target.is_dir():
        return
    if not target.is_file():
        expected = "a pipeline's file, a schedule's YAML, or a folder of them"
        raise InputError(Problem(str(target), "there is no such file or folder", expected, "look at its spelling"))
    if target.suffix.lower() not in (*python_file.SUFFIXES, ".yml", ".yaml"):
        raise InputError(Problem(str(target), "it is neither Python nor YAML", "a .py, .ipynb, .yml or .yaml file"))


def _files(target: Path) -> list[Path]:
    check_target(target)
    if not target.is_dir():
        return [target]
    files = sorted(entry for entry in target.iterdir() if entry.is_file() and not entry.name.startswith((".", "_")))
    return [file for file in files if _may_declare(file)]


def _may_declare(file: Path) -> bool:
    try:
        if file.suffix == ".py":
            return "JobSchedule" in bounded_yaml.read(file)
        if file.suffix.lower() not in (".yml", ".yaml"):
            return False
        content = bounded_yaml.load_file(file)
    except (OSError, yaml.YAMLError, ValueError):
        return False  # the command that runs the file reports it
    return isinstance(content, dict) and {"trigger", "create_job"} <= content.keys()


def _yaml(file: Path) -> list[Schedule]:
    text = yaml_lines.parse(file)
    raise_any(text.warnings)
    job = text.tree.get("create_job")
    if isinstance(job, dict) and "job" not in job:
        # The SDK would report each key of the job as unknown, because it only reads jobs from other files.
        found = "a job's own keys, and no key job"
        fix = "move the job to a file, and write: create_job: FILE"
        raise InputError(Problem(_key(text, "create_job"), found, "a pipeline's file, or the id of a job", fix))
    misspelt = validation_errors.misspelt("schedule", text.tree)
    raise_any(unknown_key(_key(text, key), meant) for key, meant in misspelt)
    frequency = text.scalar("trigger.frequency")
    if frequency is not None and str(frequency).lower() not in FREQUENCIES:
        where, fix = _key(text, "trigger.frequency"), did_you_mean(str(frequency).lower(), FREQUENCIES)
        raise InputError(Problem(where, repr(frequency), " or ".join(FREQUENCIES), fix))
    try:
        entity = internals.load_schedule(file)
    # The SDK's errors have no common class; any of them means that this file cannot be read as a schedule.
    except Exception as error:
        raise InputError.of(list(_refused(text, error)) or [_unreadable(text, error)]) from None
    return [declared(entity, str(file))]


def _key(text: YamlText, key: str) -> str:
    return f"key {key} ({text.place(key)})"


def _refused(text: YamlText, error: Exception) -> Iterator[Problem]:
    """Yield the errors of the SDK, each with its line."""
    if not validation_errors.is_own(error):
        yield _unreadable(text, error)
        return
    said = validation_errors.messages_of(error)
    keys = [key for key, _ in said]
    for key, message in said:
        # The SDK tries every form of create_job, and reports the most errors of the intended one.
        if any(other != key and (other.startswith(f"{key}.") or key == "create_job.create_job") for other in keys):
            continue
        if message == "Unknown field.":
            similar = validation_errors.similar("schedule", key, text.tree)
            if similar != key.rpartition(".")[2]:
                yield unknown_key(_key(text, key), similar)
            continue
        owner, inner = _file_of(text, key)
        where = _key(owner, inner) if inner else str(owner.path)
        yield refused(where, inner, owner.value(inner), message, owner.unquoted.get(inner))


def _unreadable(text: YamlText, error: Exception) -> Problem:
    return Problem(str(text.path), validation_errors.one_line(error), "a schedule", "correct it")


def _file_of(text: YamlText, key: str) -> tuple[YamlText, str]:
    """Return the file that has a key, which may be the file of the schedule's job, and the key in that file."""
    for prefix in ("create_job.job", "create_job"):
        job = text.scalar(prefix)
        if key.startswith(f"{prefix}.") and isinstance(job, str) and not is_remote(job):
            try:
                return yaml_lines.parse(text.path.parent / job), key.removeprefix(f"{prefix}.")
            except InputError:
                break
    return text, key


def _python(file: Path) -> list[Schedule]:
    declarations, problems = list[Schedule](), Problems()
    path = file.absolute()
    with python_file.importable(path):
        source = python_file.read(path)
        for name, member in list(vars(source.module).items()):
            if not _is_declaration(member, source.module):
                continue
            with problems:
                entity = member
                if inspect.isfunction(member):
                    with source.running():
                        entity = member()
                declarations.append(declared(entity, str(file), name))
    raise_any(problems)
    # Two variables may refer to the same schedule.
    return list({id(each.entity): each for each in reversed(declarations)}.values())[::-1]


def _is_declaration(member: Any, module: ModuleType) -> bool:
    if isinstance(member, internals.JobSchedule):
        return True
    if not inspect.isfunction(member) or member.__module__ != module.__name__:
        return False
    annotation = member.__annotations__.get("return")
    if annotation is not internals.JobSchedule and str(annotation).rpartition(".")[2] != "JobSchedule":
        return False
    parameters = inspect.signature(member).parameters.values()
    return all(
        parameter.default is not parameter.empty or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in parameters
    )


def declared(entity: Any, file: str, member: str = "") -> Schedule:
    """Return the schedule of a JobSchedule, with its checked trigger.

    file: declares it

    Raise InputError if its name, trigger, tags or job are invalid.
    """
    where = f"{file}:{member}" if member else file
    if not isinstance(entity, internals.JobSchedule):
        raise InputError(Problem(where, f"a {type(entity).__name__}", "a JobSchedule", "return one"))
    name = str(entity.name or "")
    problems = Problems()
    if not _NAME.fullmatch(name):
        expected = "letters, digits, - and _, at most 255, the first a letter or a digit"
        problems.append(Problem(f"schedule {name!r}, key name ({where})", repr(entity.name), expected))
    job = entity.create_job
    if not isinstance(job, (internals.PipelineJob, str)) or isinstance(job, internals.BaseNode):
        expected = "a pipeline: Azure ML schedules only pipelines"
        fix = "make the job a step of a pipeline, and schedule the pipeline"
        found = f"a {type(entity.create_job).__name__}"
        problems.append(Problem(f"schedule {name}, key create_job ({where})", found, expected, fix))
    trigger, policy = None, Policy()
    with problems:
        trigger = read_trigger(
            entity.trigger,
            lambda key: f"schedule {name}, key {key if key == 'trigger' else f'trigger.{key}'} ({where})",
        )
    with problems:
        policy = Policy.of(entity.tags or {}, lambda key: f"schedule {name}, key {key} ({where})")
    if problems or trigger is None:
        raise InputError.of(problems)
    description = " ".join((entity.description or "").split())
    return Schedule(name, entity.display_name or name, description, trigger, file, member, entity, policy)


def _duplicates(declarations: list[Schedule]) -> Iterator[Problem]:
    places: dict[str, str] = {}
    for schedule in declarations:
        if (first := places.setdefault(schedule.name, schedule.where)) != schedule.where:
            where = f"schedule {schedule.name} ({schedule.where})"
            yield Problem(where, f"{first} declares one with this name too", "a unique name", "rename it")
