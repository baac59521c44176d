"""Writes docs/public-specs.md: what `allranks check` finds in the specs of public repositories.

python docs/make_findings.py FOLDER...

Each folder is a checkout of a repository, named as the repository, such as azureml-assets. Nothing is copied from it
but names of files with errors. Its commit is read from a file COMMIT in it, or from git.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from allranks.api import jobs
from allranks.components.check import rules as component_rules
from allranks.errors import Problem
from allranks.plan import check as plan_check
from allranks.plan.check import only_here, tolerated
from allranks.plan.check.rule import Level
from allranks.sdk import internals, spec_files

PAGE = Path(__file__).resolve().parent / "public-specs.md"
OWNER = "Azure"
FIXTURES = "test/resources"
"""In azureml-assets: inputs for the tests of that repository's own tool, which nobody runs on Azure ML."""

HEAD = """# What the checks find in public specs

Made by `python docs/make_findings.py FOLDER...` from checkouts of repositories that Microsoft publishes, with
azure-ai-ml {version}. The specs themselves are not part of this project. [checks.md](checks.md) explains each rule.

"""
ERRORS = """## Errors

azure-ai-ml itself refuses these files: most refer to files that the repository does not have. A binding to an
output that the step's component does not have is the exception: azure-ai-ml takes it, and the output can
never exist.

"""


@dataclass
class Found:
    """What was found: counts by (level, rule), the files of each, and the errors."""

    files: int = 0
    counts: Counter[tuple[Level, str]] = field(default_factory=Counter)
    places: dict[tuple[Level, str], set[Path]] = field(default_factory=dict)
    errors: dict[Path, list[Problem]] = field(default_factory=dict)

    def add(self, path: Path, level: Level, problems: Iterable[Problem]) -> None:
        """Add the findings of a file."""
        for problem in problems:
            key = (level, rule_of(problem))
            self.counts[key] += 1
            self.places.setdefault(key, set()).add(path)
            if level is Level.ERROR:
                self.errors.setdefault(path, []).append(problem)


def rule_of(problem: Problem) -> str:
    """Return the rule of a finding; what azure-ai-ml refuses while it reads a file has none of our own."""
    return problem.rule or problem.code or plan_check.SDK.code


def components(paths: Iterable[Path], found: Found) -> None:
    """Check components, each by itself."""
    for path in paths:
        found.files += 1
        findings = component_rules.check([path])
        found.add(path, Level.ERROR, findings.errors)
        found.add(path, Level.WARNING, findings.warnings)
        found.add(path, Level.ADVICE, findings.advice)
        found.add(path, Level.MACHINE, findings.machine)


def pipelines(paths: Iterable[Path], found: Found) -> None:
    """Check pipelines and jobs, without their components."""
    with tempfile.TemporaryDirectory() as workspace:
        for path in paths:
            found.files += 1
            checked = jobs.check(path, folder=workspace)
            own, here = only_here.separated(checked.problems)
            refused, ignored = tolerated.separated(own)
            found.add(path, Level.ERROR, refused)
            found.add(path, Level.WARNING, [*checked.warnings, *ignored])
            found.add(path, Level.ADVICE, checked.advice)
            found.add(path, Level.MACHINE, [*checked.machine, *here])


def table(found: Found) -> str:
    """Return the findings by rule."""
    order = list(Level)
    lines = ["| level | rule | findings | files |", "|---|---|---|---|"]
    for level, rule in sorted(found.counts, key=lambda key: (order.index(key[0]), -found.counts[key], key[1])):
        lines.append(f"| {level.value} | `{rule}` | {found.counts[level, rule]} | {len(found.places[level, rule])} |")
    return "\n".join(lines) + "\n"


def refused_by_sdk(path: Path) -> bool:
    """Return whether azure-ai-ml itself refuses a file."""
    from azure.ai.ml import load_component, load_job

    load = load_component if spec_files.is_component(path) else load_job
    try:
        result = internals.validate(load(path))
    except Exception:
        return True
    return not result.passed


def errors(found: Found, roots: list[Path]) -> str:
    """Return the files with errors, and whether azure-ai-ml refuses them."""
    if not found.errors:
        return "No file has an error.\n"
    lines = ["| file | rule | error | azure-ai-ml refuses it |", "|---|---|---|---|"]
    for path, problems in sorted(found.errors.items()):
        root = next(root for root in roots if path.is_relative_to(root))
        name = f"{root.name}: {path.relative_to(root)}"
        rules = ", ".join(dict.fromkeys(f"`{rule_of(problem)}`" for problem in problems))
        said = problems[0].found.replace(str(root), root.name).replace("|", "\\|")
        lines.append(f"| {name} | {rules} | {said[:100]} | {'yes' if refused_by_sdk(path) else 'no'} |")
    return "\n".join(lines) + "\n"


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
        lines.append(f"| {OWNER}/{folder.name} | `{commit_of(folder)}` | {len(own)} | {len(own_jobs)} |")
        components(own, of_components)
        pipelines(own_jobs, of_pipelines)
    text += "\n".join(lines) + "\n\n"
    text += f"Files below `{FIXTURES}` are left out: they are inputs for tests of a tool.\n\n"
    text += f"## Components\n\n{of_components.files} components.\n\n{table(of_components)}\n"
    text += f"## Pipelines and jobs\n\n{of_pipelines.files} pipelines and jobs, each without its components.\n\n"
    text += f"{table(of_pipelines)}\n"
    return text + ERRORS + _errors(of_components, of_pipelines, folders)


def _errors(of_components: Found, of_pipelines: Found, folders: list[Path]) -> str:
    both = Found(errors={**of_components.errors, **of_pipelines.errors})
    return errors(both, folders)


if __name__ == "__main__":
    PAGE.write_text(page([Path(argument).resolve() for argument in sys.argv[1:]]), encoding="utf-8")
