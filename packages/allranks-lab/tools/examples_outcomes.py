"""Checks and runs the files of azureml-examples, and saves what came of it, for make_conformance.py."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path

from allranks.api import jobs
from allranks.errors import Problem
from allranks.history import stored
from allranks.workspace import Workspace

ALLRANKS = Path(sys.executable).parent / "allranks"
WORKERS, PATIENCE, RUN_PATIENCE = 4, 120.0, 120.0
"""How many files are checked at a time, and the seconds to check a file and to run a job."""

REALISED, REALISED_PATIENCE = ("cli/jobs/basics", "cli/jobs/pipelines-with-components/basics"), 2400.0
"""Folders whose files also run in the environments that they name, and the seconds for that, with installing them. One
of the files trains for 10,000 epochs."""

CURATED = {
    "sklearn-1.5": (
        "python=3.10", "numpy~=1.22.0", "pandas~=1.5.3", "scipy~=1.10.0", "scikit-learn~=1.5.0", "matplotlib~=3.5.0",
        f"mlflow=={metadata.version('mlflow')}",
    ),
    "tensorflow-2.16-cuda12": ("python=3.10", "tensorflow-cpu~=2.16.1"),
}  # fmt: skip
"""What curated environments declare in Azure/azureml-assets, of which the examples import packages."""

LACKS = {
    "": "check, and this machine lacks nothing",
    "unresolved-name": "check; name something that only a workspace or a registry has",
    "not-run-here": "check; have a node that does not run here: AutoML, Flow, fine-tuning or Spark",
    "missing-package": "check; need a package that this machine lacks",
    "missing-program": "check; need a program that this machine lacks",
    "file-fails": "check; a cell of theirs needs a package, or downloads something, that this machine lacks",
    "missing-data": "check; use data that a cell would download",
}
"""What is said of files that check, by the code of what this machine lacks first."""

SIGNS = {
    "network": r"URLError|ConnectionError|[Rr]esolve host|name resolution|service not known|Max retries|ProxyError|"
    r"Cannot connect to host",
    "program": r"command not found|: not found|cannot open shared object|is not installed",
    "version": r"cannot import name|object has no attribute|module '\S+' has no attribute|"
    r"No module named '(?!azure|google)\w+\.",
    "package": r"ModuleNotFoundError|No module named|there is no module",
    "file": r"No such file or directory",
}
"""By how a run ended, what its reason or a line of its logs contains."""


@dataclass(frozen=True)
class Outcome:
    """What a check found first. An error is before what only this machine lacks.

    rule: its code or rule; "" if nothing was found
    """

    rule: str = ""
    where: str = ""
    found: str = ""
    is_error: bool = False


@dataclass(frozen=True)
class Outcomes:
    """What was found, by file relative to the root.

    ends:     of each run, how it ended and the reason
    realised: the same of runs in the environments of the files; of a completed one, the Python of its steps
    """

    file: Path | None
    checks: dict[str, Outcome] = field(default_factory=dict)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    realised: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path | None) -> Outcomes:
        """Return the outcomes that an earlier call has saved."""
        if file is None or not file.exists():
            return cls(file)
        saved = json.loads(file.read_text(encoding="utf-8"))
        checks = {name: Outcome(**each) for name, each in saved["checks"].items()}
        ends = ({name: tuple(end) for name, end in saved.get(key, {}).items()} for key in ("ends", "realised"))
        return cls(file, checks, *ends)

    def save(self) -> None:
        """Save the outcomes, if there is a file for them."""
        if self.file is not None:
            checks = {name: asdict(each) for name, each in self.checks.items()}
            saved = {"checks": checks, "ends": self.ends, "realised": self.realised}
            self.file.write_text(json.dumps(saved, indent=1), encoding="utf-8")

    def check(self, paths: Sequence[Path], root: Path) -> None:
        """Check the files, some at a time, each in a process that is forked from this one."""
        jobs.check(str(paths[0]))  # imports azure-ai-ml for all of them
        new = [path for path in paths if path.relative_to(root).as_posix() not in self.checks]
        with ThreadPoolExecutor(WORKERS) as pool:
            for path, outcome in zip(new, pool.map(first_problem, map(str, new)), strict=True):
                self.checks[path.relative_to(root).as_posix()] = outcome
                self.save()

    def run(self, root: Path) -> None:
        """Run the files for which this machine lacks nothing."""
        for name, outcome in self.checks.items():
            if not outcome.rule and name not in self.ends:
                self.ends[name] = how_it_runs(str(root / name))
                self.save()

    def run_in_environments(self, root: Path) -> None:
        """Run the files of REALISED in their environments, if this machine lacks nothing but packages for them."""
        mapped = {"environments": {}}
        for name, packages in CURATED.items():
            (root / f"{name}.yml").write_text(json.dumps({"dependencies": packages}), encoding="utf-8")
            for key in (f"registries/azureml/environments/{name}", f"AzureML-{name}"):
                mapped["environments"][key] = f"{name}.yml"
        (root / "allranks.yaml").write_text(json.dumps(mapped), encoding="utf-8")
        names = [name for name in in_realised(self.checks) if self.checks[name].rule in ("", "missing-package")]
        new = [name for name in names if name not in self.realised]
        with ThreadPoolExecutor(2) as pool:
            runs = {pool.submit(in_environments, str(root / name)): name for name in new}
            for ended in as_completed(runs):
                self.realised[runs[ended]] = ended.result()
                self.save()


def in_realised(names: Iterable[str]) -> list[str]:
    """Return those of the files that are in a folder of REALISED."""
    return [name for name in names if any(Path(name).is_relative_to(folder) for folder in REALISED)]


def first_problem(target: str) -> Outcome:
    """Return the first problem of a file, as ``allranks check FILE`` finds it, in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_check, args=(target, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PATIENCE) else Outcome("time", found="time", is_error=True)
    except EOFError:
        return Outcome("crash", found="the check ended without a result", is_error=True)
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
    rule = first.code or first.rule or ("refused" if checked.errors else "not-run-here")
    sender.send(Outcome(rule, first.where, first.found, bool(checked.errors)))


def in_environments(target: str) -> tuple[str, str]:
    """Run a job in its environments. Return as `how_it_runs`."""
    return how_it_runs(target, "--environment", "venv", patience=REALISED_PATIENCE)


def how_it_runs(target: str, *options: str, patience: float = RUN_PATIENCE) -> tuple[str, str]:
    """Run a job. Return how it ended, a key of ENDS or "failed", and the reason; of a completed one, its Pythons.

    If the job needs a network, run it again on instances whose steps reach that of this machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ALLRANKS), "run", target, "--folder", folder, *options]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        # Runs share the slots of a temporary folder: this one does not wait for others.
        process = subprocess.Popen(command, env={**os.environ, "TMPDIR": folder}, text=True, **pipes)
        text = Path(target.partition(":")[0]).read_text(encoding="utf-8", errors="replace")
        asleep = sum(map(int, re.findall(r"\bsleep (\d+)", text)))
        limit = patience + asleep
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
            process.kill()
            process.communicate()
            return "time", f"takes longer than {limit:.0f} s{f', {asleep} of which it sleeps' if asleep else ''}"
        if names := re.findall(rf"{re.escape(Path(target).name)}:(\w+)", output) * ("why several-pipelines" in output):
            ends = [how_it_runs(f"{target}:{name}", *options, patience=patience) for name in dict.fromkeys(names)]
            return next((end for end in ends if end[0] != "Completed"), ends[0])
        if refused := re.search(r"^ +found +(.*)\n(?:(?! +found).*\n)*.*why no-download$", output, re.MULTILINE):
            return "network", refused[1]
        runs = stored.runs(Workspace(Path(folder)))
        if process.returncode == 0:
            found = (re.match(r"Python [\d.]+( of allranks)?", step.interpreter) for step in runs[0].steps)
            return "Completed", ", ".join(sorted({match[0] for match in found if match}))
        logs = sorted(Path(folder).rglob("std_log*"))
        lines = "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in logs).splitlines()
        verdict = runs[0].verdict if runs else None
    reason = verdict.reason if verdict else output.strip().partition("\n")[0]
    for kind, sign in SIGNS.items():
        if line := next((line for line in (reason, *reversed(lines)) if re.search(sign, line)), ""):
            if kind != "network" or "--instances" in options:
                return kind, line
            return how_it_runs(target, *options, "--instances", "loopback", patience=patience)
    return "failed", f"{reason}; {lines[-1]}" if lines else reason
