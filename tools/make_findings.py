"""Writes docs/reports/public-specs.md: what `allranks check` finds in the specs of public repositories.

python tools/make_findings.py FOLDER...

Each folder is a checkout of a repository, OWNER/NAME, such as Azure/azureml-assets. Nothing is copied from it but names
of files and what the checks say of them. Its commit is read from a file COMMIT in it, or from git.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from allranks.api import jobs
from allranks.checks import Findings, component
from allranks.errors import Level, Problem, Rule
from allranks.sdk import internals, spec_files

PAGE = Path(__file__).resolve().parents[1] / "docs/reports/public-specs.md"
FIXTURES = "test/resources"
"""In azureml-assets: inputs for the tests of that repository's own tool, which nobody runs on Azure ML."""

HEAD = """# What the checks find in public specs

Made by `python tools/make_findings.py OWNER/NAME...` from checkouts of public repositories at the commits below, with
azure-ai-ml {version}. The specs themselves are not part of this project. `allranks why RULE` explains each rule.

```console
$ git clone https://github.com/OWNER/NAME OWNER/NAME
$ git -C OWNER/NAME checkout COMMIT
```

"""
ERRORS = """## Errors

None of these files runs on Azure ML as it stands: azure-ai-ml refuses each of them itself, before it sends the job or
the component. The last column says when.

- *loading*: `load_component` or `load_job` raises. Most refer to files that the repository does not have, or have a
  placeholder such as `<...>` in place of a value, or are of an older schema.
- *validating*: the validation of the loaded file, which `az ml` runs too.
- *submitting*: JobOperations.create_or_update (azure-ai-ml, `operations/_job_operations.py`) resolves the inputs and
  uploads local data. It raises for an input of data without a path, and for a path that does not exist. These files are
  templates: their values must be set first, with `az ml job create --set` or in the file.

"""
UNDECIDED = """
## Undecided

azure-ai-ml accepts these files, and we found no document or issue that says what Azure ML does with what is wrong in
them. `allranks run` cannot run them, so it is an error. A file that has another error too is in both tables.

"""
KEY = re.compile(r"\bkey (\S+) \(")
UNDECIDED_RULES = ("dangling-binding", "asset-id")
ACCEPTED = frozenset(rule.code for rule in Rule.all_about("plan") if rule.accepted_by_sdk)
"""Rules of errors in what azure-ai-ml accepts and drops."""


@dataclass
class Found:
    """What was found: counts by (level, rule), the files of each, the errors, and what nobody can decide."""

    files: int = 0
    counts: Counter[tuple[Level, str]] = field(default_factory=Counter)
    places: dict[tuple[Level, str], set[Path]] = field(default_factory=dict)
    errors: dict[Path, list[Problem]] = field(default_factory=dict)
    undecided: dict[Path, list[Problem]] = field(default_factory=dict)

    def add(self, path: Path, findings: Findings) -> None:
        """Add the findings of a file."""
        for problem in findings.found:
            level = problem.level
            key = (level, rule_of(problem, level))
            self.counts[key] += 1
            self.places.setdefault(key, set()).add(path)
            if problem.rule in UNDECIDED_RULES:
                self.undecided.setdefault(path, []).append(problem)
            elif level is Level.ERROR and problem.rule not in ACCEPTED:
                self.errors.setdefault(path, []).append(problem)


def rule_of(problem: Problem, level: Level) -> str:
    """Return the rule of a finding; what azure-ai-ml refuses while it reads a file has none of our own."""
    if problem.rule:
        return problem.rule
    return problem.code if level is Level.MACHINE else "azure-ai-ml"


def components(paths: Iterable[Path], found: Found) -> None:
    """Check components, each by itself."""
    for path in paths:
        found.files += 1
        found.add(path, component.check([path]))


def pipelines(paths: Iterable[Path], found: Found) -> None:
    """Check pipelines and jobs, without their components."""
    with tempfile.TemporaryDirectory() as workspace:
        for path in paths:
            found.files += 1
            found.add(path, jobs.check(path, folder=workspace))


def table(found: Found) -> str:
    """Return the findings by rule."""
    order = list(Level)
    lines = ["| level | rule | findings | files |", "|---|---|---|---|"]
    for level, rule in sorted(found.counts, key=lambda key: (order.index(key[0]), -found.counts[key], key[1])):
        lines.append(f"| {level.value} | `{rule}` | {found.counts[level, rule]} | {len(found.places[level, rule])} |")
    return "\n".join(lines) + "\n"


def refused_by_sdk(path: Path) -> str:
    """Return when azure-ai-ml itself refuses a file: loading, validating or submitting; "no" if it takes it."""
    from azure.ai.ml import load_component, load_job

    is_component = spec_files.kind(path) is spec_files.Kind.COMPONENT
    try:
        entity = load_component(path) if is_component else load_job(path)
    except Exception:
        return "loading"
    try:
        if not internals.validate(entity).passed:
            return "validating"
    except Exception:
        return "validating"
    try:
        if not is_component:
            resolve_inputs(entity)
    except Exception:
        return "submitting"
    return "no"


class _NoWorkspace:
    """Replaces the client's operations on a workspace. Each use raises HttpResponseError."""

    def __getattr__(self, name: str) -> Any:
        from azure.core.exceptions import HttpResponseError

        raise HttpResponseError(f"{name} needs a workspace")


def resolve_inputs(job: Any) -> None:
    """Resolve the inputs of a job and of its steps as the client does before it sends the job.

    What needs a workspace, such as an upload, is left out. Raise what the client raises for an input that it refuses.
    """
    from azure.ai.ml.entities import Command, PipelineJob, Spark
    from azure.ai.ml.operations import JobOperations
    from azure.core.exceptions import HttpResponseError

    operations: Any = JobOperations
    if isinstance(job, PipelineJob):
        nodes = (node for node in job.jobs.values() if isinstance(node, internals.BaseNode))
        entries = [entry for owner in (job, *nodes) for entry in operations._flatten_group_inputs(owner.inputs)]
    else:
        own = job._job_inputs if isinstance(job, (Command, Spark)) else getattr(job, "inputs", None)
        entries = list((own or {}).values())
    none = _NoWorkspace()
    client = SimpleNamespace(
        _operation_scope=None, _show_progress=False, _datastore_operations=none, _orchestrators=none
    )
    for entry in entries:
        with contextlib.suppress(HttpResponseError):
            operations._resolve_job_input(client, entry, job._base_path)


def errors(found: Found, roots: list[Path]) -> str:
    """Return the files with errors, and when azure-ai-ml refuses them."""
    if not found.errors:
        return "No file has an error.\n"
    lines = ["| file | rule | error | azure-ai-ml refuses it |", "|---|---|---|---|"]
    lines += [f"{_row(path, found.errors, roots)} {refused_by_sdk(path)} |" for path in sorted(found.errors)]
    return "\n".join(lines) + "\n"


def undecided(found: Found, roots: list[Path]) -> str:
    """Return the files with something that azure-ai-ml takes and nobody can decide."""
    if not found.undecided:
        return "There are none.\n"
    lines = ["| file | rule | warning |", "|---|---|---|"]
    return "\n".join([*lines, *(_row(path, found.undecided, roots) for path in sorted(found.undecided))]) + "\n"


def _row(path: Path, by_file: dict[Path, list[Problem]], roots: list[Path]) -> str:
    """Return the file, its rules and its first finding."""
    problems = by_file[path]
    root = next(root for root in roots if path.is_relative_to(root))
    rules = ", ".join(dict.fromkeys(f"`{rule_of(problem, Level.ERROR)}`" for problem in problems))
    key = KEY.search(problems[0].where)
    said = f"{key[1]}: " if key else ""
    said += problems[0].found.replace(str(root), root.name).replace("|", "\\|")
    return f"| {repository(root)}: {path.relative_to(root)} | {rules} | {said[:100]} |"


def repository(folder: Path) -> str:
    """Return OWNER/NAME of a checkout."""
    return f"{folder.parent.name}/{folder.name}"


def commit_of(folder: Path) -> str:
    """Return the commit of a checkout."""
    if (folder / "COMMIT").is_file():
        return (folder / "COMMIT").read_text(encoding="utf-8").strip()
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def page(folders: list[Path]) -> str:
    """Return the page."""
    from importlib.metadata import version

    text = HEAD.format(version=version("azure-ai-ml"))
    of_components, of_pipelines = Found(), Found()
    lines = ["| repository | commit | components | pipelines and jobs |", "|---|---|---|---|"]
    for folder in folders:
        specs = spec_files.below(folder)
        own, own_jobs = (
            [path for path in paths if FIXTURES not in path.relative_to(folder).as_posix()]
            for paths in (specs.components, specs.jobs)
        )
        if not own and not own_jobs:
            raise SystemExit(f"{folder} has no components, pipelines or jobs: leave it out")
        lines.append(f"| {repository(folder)} | `{commit_of(folder)}` | {len(own)} | {len(own_jobs)} |")
        components(own, of_components)
        pipelines(own_jobs, of_pipelines)
    text += "\n".join(lines) + "\n\n"
    text += f"Files below `{FIXTURES}` are left out: they are inputs for tests of a tool.\n\n"
    text += f"## Components\n\n{of_components.files} components.\n\n{table(of_components)}\n"
    text += f"## Pipelines and jobs\n\n{of_pipelines.files} pipelines and jobs, each without its components.\n\n"
    text += f"{table(of_pipelines)}\n"
    both = Found(
        errors=of_components.errors | of_pipelines.errors, undecided=of_components.undecided | of_pipelines.undecided
    )
    return text + ERRORS + errors(both, folders) + UNDECIDED + undecided(both, folders)


if __name__ == "__main__":
    PAGE.write_text(page([Path(argument).resolve() for argument in sys.argv[1:]]), encoding="utf-8")
