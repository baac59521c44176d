"""Writes docs/conformance.md: what `allranks check` says of the pipelines, jobs and notebooks of azureml-examples.

ALLRANKS_EXAMPLES=DIR python docs/make_conformance.py

DIR is a checkout of Azure/azureml-examples. Nothing is copied from it but the names of files. Its commit is read from a
file COMMIT in it, or from git. A notebook is executed up to its jobs, in a process of its own, for at most a minute.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path

from make_findings import commit_of, refused_by_sdk

from allranks.api import jobs
from allranks.errors import Problem
from allranks.sdk import spec_files

PAGE = Path(__file__).resolve().parent / "conformance.md"
PATIENCE = 60.0
"""Seconds for a file."""

SUBMITS = re.compile(r"jobs\s*\.\s*(begin_)?create_or_update")
"""What a notebook contains that submits a job."""

HEAD = """# The examples of Azure ML

Made by `ALLRANKS_EXAMPLES=DIR python docs/make_conformance.py` from a checkout of Azure/azureml-examples at commit
`{commit}`, on a machine without access to the internet. None of its files is part of this project.

A file that checks has no error. Of what only this machine lacks, the first thing is counted: a name that `allranks map`
resolves, a package, or a node that does not run here, for which `--stand-in` gives outputs.

"""
REASONS = {
    "": "checks, and this machine lacks nothing",
    "unresolved-name": "checks; names something that only a workspace or a registry has",
    "not-run-here": "checks; has a node that does not run here: AutoML, Flow, fine-tuning, or Spark without PySpark",
    "missing-package": "checks; needs a package or a program that this machine lacks",
    "data": "refers to data that the repository does not have",
    "file-fails": "does not execute here: it downloads something, or imports a package that this machine lacks",
    "several-pipelines": "has several jobs: one of them is named as FILE:JOB",
    "time": f"takes longer than {PATIENCE:.0f} s to execute",
}
"""What is said of a file, by the rule of its first problem. Other problems are listed by themselves."""


def first_problem(path: Path) -> tuple[str, str]:
    """Return the rule of the first problem of a file, an error before what this machine lacks, and what was found."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_check, args=(path, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(PATIENCE):
            return "time", ""
        rule, found = receiver.recv()
        return str(rule), str(found)
    except EOFError:
        return "crash", "the check ended without a result"
    finally:
        process.kill()
        process.join()


def _check(path: Path, sender: Connection) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.setsid()
    with tempfile.TemporaryDirectory() as workspace:
        checked = jobs.check(path, folder=workspace)
    problems: list[Problem] = [*checked.errors, *checked.machine]
    sender.send((problems[0].rule or problems[0].code or "refused", problems[0].found) if problems else ("", ""))


def table(paths: Iterable[Path], root: Path) -> str:
    """Return the outcomes of files by their reason, and the files with other reasons."""
    outcomes: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path in paths:
        rule, found = first_problem(path)
        outcomes[rule].append((path, found))
    lines = ["| files | |", "|---:|---|"]
    lines += [f"| {len(outcomes[rule])} | {reason} |" for rule, reason in REASONS.items() if rule in outcomes]
    others = {rule: files for rule, files in outcomes.items() if rule not in REASONS}
    lines.append(f"| {sum(map(len, others.values()))} | has one of the errors below |")
    if others:
        lines += ["", "| file | rule | error | azure-ai-ml refuses it |", "|---|---|---|---|"]
    for rule, files in sorted(others.items()):
        for path, found in files:
            said = re.sub(r"\s+", " ", found.replace(str(root), "").replace("|", "\\|"))[:100]
            refused = refused_by_sdk(path) if path.suffix in (".yml", ".yaml") else ""
            lines.append(f"| {path.relative_to(root)} | `{rule}` | {said} | {refused} |")
    return "\n".join(lines) + "\n"


def page(root: Path) -> str:
    """Return the page."""
    own_jobs = spec_files.below(root).jobs
    notebooks = [
        path
        for path in sorted(root.rglob("*.ipynb"))
        if SUBMITS.search(text := path.read_text(encoding="utf-8", errors="replace")) and "pipeline" in text
    ]
    text = HEAD.format(commit=commit_of(root))
    text += f"## Pipelines and jobs in YAML\n\n{len(own_jobs)} files, each without its components.\n\n"
    text += f"{table(own_jobs, root)}\n"
    text += f"## Notebooks with pipelines\n\n{len(notebooks)} notebooks that submit a job and name a pipeline.\n\n"
    return text + table(notebooks, root)


if __name__ == "__main__":
    if not os.environ.get("ALLRANKS_EXAMPLES"):
        sys.exit("ALLRANKS_EXAMPLES: is not set\n  expected: the folder of a checkout of Azure/azureml-examples")
    PAGE.write_text(page(Path(os.environ["ALLRANKS_EXAMPLES"]).resolve()), encoding="utf-8")
