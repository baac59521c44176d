"""Writes docs/conformance.md: what `allranks check` says of the pipelines, jobs and notebooks of azureml-examples.

ALLRANKS_EXAMPLES=DIR python docs/make_conformance.py [--run] [--results FILE]

DIR is a checkout of Azure/azureml-examples. Nothing is copied from it but the names of files. Its commit is read from a
file COMMIT in it, or from git. A notebook is executed up to its jobs, in a process of its own, for at most a minute.

With --run, `allranks run` executes each file for which this machine lacks nothing, for at most two minutes. The
outcomes are saved in FILE, from which a later call continues.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from make_findings import commit_of, refused_by_sdk

from allranks.api import jobs
from allranks.errors import Problem
from allranks.runs import history
from allranks.runs.workspace import Workspace
from allranks.sdk import spec_files

PAGE = Path(__file__).resolve().parent / "conformance.md"
ALLRANKS = Path(sys.executable).parent / "allranks"
PATIENCE, RUN_PATIENCE = 60.0, 120.0
"""Seconds to check a file, and to run a job."""

SUBMITS = re.compile(r"jobs\s*\.\s*(begin_)?create_or_update")
"""What a notebook contains that submits a job."""

HEAD = """# The examples of Azure ML

Made by `ALLRANKS_EXAMPLES=DIR python docs/make_conformance.py --run` from a checkout of Azure/azureml-examples, commit
`{commit}`, on a machine without access to the internet. None of its files is part of this project.

A file that checks has no error. Of what only this machine lacks, the first thing is counted: a name that `allranks map`
resolves, a package, or a node that does not run here, for which `--stand-in` gives outputs. Of a notebook with several
jobs, each is checked, and the worst outcome is counted.

"""
TAIL = """
## Pipelines of azure-ai-ml's own tests

Azure/azure-sdk-for-python has pipelines that are written in Python and in YAML, in
`sdk/ml/azure-ai-ml/tests/test_configs/dsl_pipeline`. Both must be the same plan:

    ALLRANKS_SDK_TESTS=DIR pytest tests/plan/reader/test_sdk_pipelines.py

Seen with azure-ai-ml 1.35.2: the 15 pairs of `data_binding_expression` (12), `component_with_input_output`,
`e2e_local_components` and `data_transfer_job_in_pipeline/copy_data`, with the keyword `source=` in place of older ones,
are equal. Compared is everything but names, places in files, and what a function declares of its inputs beyond their
values. Other folders were not at hand. Pairs that name registered components are skipped.
"""
REASONS = {
    "": "check, and this machine lacks nothing",
    "unresolved-name": "check; name something that only a workspace or a registry has",
    "not-run-here": "check; have a node that does not run here: AutoML, Flow, fine-tuning, or Spark without PySpark",
    "missing-package": "check; need a package or a program that this machine lacks",
    "machine file-fails": "check; a cell of theirs needs a package, or downloads something, that this machine lacks",
    "data": "refer to data that the repository does not have",
    "file-fails": "make their job from something that this machine lacks: a package, or what they download",
    "time": f"take longer than {PATIENCE:.0f} s to execute",
}
"""What is said of files, by the rule of their first problem. Other problems are listed by themselves."""

ENDS = {
    "Completed": "complete",
    "package": "need a package that this machine lacks, which a check does not find",
    "version": "need an older version of a package",
    "program": "need a program or a library of the system that this machine lacks",
    "network": "download something",
    "time": f"take longer than {RUN_PATIENCE:.0f} s",
}
"""What is said of the files that ran, by how their runs ended. Others are listed by themselves."""
SIGNS = {
    "package": r"ModuleNotFoundError|No module named|there is no module",
    "version": r"cannot import name|object has no attribute|module '\S+' has no attribute",
    "network": r"URLError|ConnectionError|[Rr]esolve host|name resolution|service not known|Max retries|ProxyError",
    "program": r"command not found|: not found|cannot open shared object|is not installed",
}
"""By how a run ended, what its reason or the end of its log contains."""


@dataclass(frozen=True)
class Outcome:
    """rule: of the first problem; found: what it found; names: the jobs of a file that has several"""

    rule: str = ""
    found: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """What was found, by file relative to the root. ends: of each run, how it ended and the reason"""

    file: Path | None
    checks: dict[str, Outcome] = field(default_factory=dict)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path | None) -> Outcomes:
        """Return the outcomes that an earlier call has saved."""
        if file is None or not file.exists():
            return cls(file)
        saved = json.loads(file.read_text(encoding="utf-8"))
        checks = {name: Outcome(**{**each, "names": tuple(each["names"])}) for name, each in saved["checks"].items()}
        return cls(file, checks, {name: tuple(end) for name, end in saved["ends"].items()})

    def save(self) -> None:
        """Save the outcomes, if there is a file for them."""
        if self.file is not None:
            checks = {name: asdict(each) for name, each in self.checks.items()}
            self.file.write_text(json.dumps({"checks": checks, "ends": self.ends}, indent=1), encoding="utf-8")

    def examine(self, path: Path, root: Path, run: bool) -> None:
        """Check a file and, if this machine lacks nothing, run it."""
        name = path.relative_to(root).as_posix()
        if name not in self.checks:
            self.checks[name] = checked(path)
            self.save()
        outcome = self.checks[name]
        if run and not outcome.rule and name not in self.ends:
            ends = [how_it_runs(f"{path}:{job}" if job else str(path)) for job in outcome.names or ("",)]
            self.ends[name] = next((end for end in ends if end[0] != "Completed"), ends[0])
            self.save()


def checked(path: Path) -> Outcome:
    """Return the first problem of a file, an error before what this machine lacks. Of several jobs, check each."""
    outcome = first_problem(str(path))
    if outcome.rule != "several-pipelines":
        return outcome
    names = tuple(name for name in outcome.names if name.isidentifier())
    each = [first_problem(f"{path}:{name}") for name in names]
    worst = max(each, key=lambda one: list(REASONS).index(one.rule) if one.rule in REASONS else 99, default=outcome)
    return Outcome(worst.rule, worst.found, names)


def first_problem(target: str) -> Outcome:
    """Return the first problem of ``FILE[:NAME]``, checked in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_check, args=(target, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PATIENCE) else Outcome("time")
    except EOFError:
        return Outcome("crash", "the check ended without a result")
    finally:
        process.kill()
        process.join()


def _check(target: str, sender: Connection) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.setsid()
    with tempfile.TemporaryDirectory() as workspace:
        checked = jobs.check(target, folder=workspace)
    problems: list[Problem] = [*checked.errors, *checked.machine]
    if not problems:
        sender.send(Outcome())
        return
    first = problems[0]
    rule = first.rule or first.code or "refused"
    rule = f"machine {rule}" if rule == "file-fails" and not checked.errors else rule
    names = re.findall(r"\S+:(\w+)", first.fix) if rule == "several-pipelines" else ()
    sender.send(Outcome(rule, first.found, tuple(names)))


def how_it_runs(target: str) -> tuple[str, str]:
    """Run a job. Return how it ended, a key of ENDS or "failed", and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ALLRANKS), "run", target, "--folder", folder]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            output, _ = process.communicate(timeout=RUN_PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
            process.kill()
            process.communicate()
            return "time", ""
        if process.returncode == 0:
            return "Completed", ""
        runs = history.runs(Workspace(Path(folder)))
        verdict = runs[0].verdict if runs else None
        reason = verdict.reason if verdict else output.strip().partition("\n")[0]
        said = "\n".join((reason, *verdict.tail)) if verdict else output
    kind = next((kind for kind, sign in SIGNS.items() if re.search(sign, said)), "failed")
    return kind, f"{reason}; {verdict.tail[-1]}" if kind == "failed" and verdict and verdict.tail else reason


def table(names: Iterable[str], outcomes: Outcomes, root: Path) -> str:
    """Return the outcomes of files by their reason, and the files with other reasons."""
    by_rule: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_rule[outcomes.checks[name].rule].append(name)
    lines = _counts(by_rule, REASONS, "have one of the errors below")
    others = {rule: files for rule, files in by_rule.items() if rule not in REASONS}
    if others:
        lines += ["", "| file | rule | error | azure-ai-ml refuses it |", "|---|---|---|---|"]
    for rule, files in sorted(others.items()):
        for name in files:
            refused = refused_by_sdk(root / name) if name.endswith((".yml", ".yaml")) else ""
            lines.append(f"| {name} | `{rule}` | {_said(outcomes.checks[name].found, root)} | {refused} |")
    ran: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if name in outcomes.ends:
            ran[outcomes.ends[name][0]].append(name)
    if ran:
        lines += ["", f"Of those for which this machine lacks nothing, {sum(map(len, ran.values()))} were run:", ""]
        lines += _counts(ran, ENDS, "fail as listed below")
        lines += ["", "| file | what its run says |", "|---|---|"]
        ended = ENDS["time"]
        failed = (name for kind, files in ran.items() if kind != "Completed" for name in files)
        lines += [f"| {name} | {_said(outcomes.ends[name][1], root) or ended} |" for name in sorted(failed)]
    return "\n".join(lines) + "\n"


def _counts(groups: Mapping[str, list[str]], reasons: Mapping[str, str], otherwise: str) -> list[str]:
    """Return the table of how many files are in each group."""
    lines = ["| files | |", "|---:|---|"]
    lines += [f"| {len(groups[key])} | {reason} |" for key, reason in reasons.items() if key in groups]
    others = sum(len(files) for key, files in groups.items() if key not in reasons)
    return [*lines, *([f"| {others} | {otherwise} |"] if others else [])]


def _said(found: str, root: Path) -> str:
    return re.sub(r"\s+", " ", found.replace(str(root), "").replace(sys.prefix, "").replace("|", "\\|"))[:120]


def page(root: Path, outcomes: Outcomes, run: bool) -> str:
    """Return the page."""
    own_jobs = spec_files.below(root).jobs
    notebooks = [
        path
        for path in sorted(root.rglob("*.ipynb"))
        if SUBMITS.search(text := path.read_text(encoding="utf-8", errors="replace")) and "pipeline" in text
    ]
    for path in (*own_jobs, *notebooks):
        outcomes.examine(path, root, run)
    of_jobs, of_notebooks = ([path.relative_to(root).as_posix() for path in each] for each in (own_jobs, notebooks))
    text = HEAD.format(commit=commit_of(root))
    text += f"## Pipelines and jobs in YAML\n\n{len(own_jobs)} files, each without its components.\n\n"
    text += f"{table(of_jobs, outcomes, root)}\n"
    text += f"## Notebooks with pipelines\n\n{len(notebooks)} notebooks that submit a job and name a pipeline.\n\n"
    return text + table(of_notebooks, outcomes, root) + TAIL


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="also run the files for which this machine lacks nothing")
    parser.add_argument("--results", type=Path, help="the file in which outcomes are saved")
    arguments = parser.parse_args()
    if not os.environ.get("ALLRANKS_EXAMPLES"):
        sys.exit("ALLRANKS_EXAMPLES: is not set\n  expected: the folder of a checkout of Azure/azureml-examples")
    folder = Path(os.environ["ALLRANKS_EXAMPLES"]).resolve()
    PAGE.write_text(page(folder, Outcomes.load(arguments.results), arguments.run), encoding="utf-8")
