"""Check the programs that a command starts: launchers inside of a launch, variables of a rank, and lines that a shell
misreads."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from allranks.checks.plan.scope import Scope
from allranks.contract.commands import expansions, simple_commands
from allranks.contract.distributions import processes_per_instance
from allranks.contract.launchers import OF_ALL_INSTANCES, find
from allranks.contract.mpi import OPEN_MPI, Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.contract.single import Single
from allranks.errors import Problem, Rule, finding
from allranks.plan.graph import Step

_JOINS = re.compile(r"--(?:node|machine)[_-]rank\b|--rdzv|--config_file\b|\bPET_")
"""Options and variables by which a launcher joins those of the other instances."""
_SHELLS = frozenset({".", "bash", "dash", "sh", "source"})
_COMMENT, _LARGE = re.compile(r"^\s*#.*$", re.MULTILINE), 1 << 20


def launcher_of(command: str) -> str:
    """Return the launcher that a command starts, such as ``accelerate launch``; "" if it starts none."""
    simple = (find((each.program, *each.arguments)) for each in simple_commands(command))
    return next((found[0] for found in simple if found), "")


def _launch_in(step: Step) -> tuple[str, str]:
    """Return the launcher that a step's command, or a shell script of it, starts, and the text that contains it."""
    read = (_COMMENT.sub("", text) for _, text, by_shell in _texts(step) if by_shell)
    return next(((launcher, text) for text in read if (launcher := launcher_of(text))), ("", ""))


def _texts(step: Step, *, python: bool = False) -> Iterator[tuple[str, str, bool]]:
    """Yield the command in the form of `_scripts`, then the scripts."""
    yield "the command", step.command, True
    yield from _scripts(step, python=python)


def _scripts(step: Step, *, python: bool = False) -> Iterator[tuple[str, str, bool]]:
    """Yield each file of the code that the command, or a shell script of it, starts: its path, its text with its line
    ends, and whether a shell reads it.

    python: whether to include files that Python reads
    """
    waiting, seen = [step.command] if step.code else [], set[str]()
    while waiting:
        for simple in simple_commands(waiting.pop()):
            words = (simple.program, *simple.arguments)
            for word in dict.fromkeys(word for word in words if word not in seen):
                by_shell = word.endswith(".sh") or (simple.name in _SHELLS and word in simple.arguments)
                path = Path(step.code.folder if step.code else "", word)
                if not (by_shell or word == simple.program or (python and word.endswith(".py"))):
                    continue
                if os.path.isfile(path) and path.stat().st_size < _LARGE:
                    seen.add(word)
                    text = path.read_bytes().decode("utf-8", "replace")
                    waiting += [text] if by_shell else []
                    yield word, text, by_shell


def nested(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning about the launcher of a step's command."""
    launcher, text = _launch_in(step)
    processes = processes_per_instance(step.distribution)
    if not launcher:
        return
    by_ssh = launcher in OF_ALL_INSTANCES and "--no_ssh" not in text
    if processes > 1 or (isinstance(step.distribution, Mpi) and by_ssh):
        ranks = "rank" if processes == 1 else f"of the {processes} ranks of an instance"
        found = f"{launcher} in a step of distribution {step.distribution.type}: each {ranks} starts its own"
        yield Problem("command", found, "one launcher: Azure ML's, or that of the command", _nested_fix(step))
    elif launcher == "deepspeed" and by_ssh and step.instance_count > 1:
        found = f"the launcher of DeepSpeed on {step.instance_count} instances: it starts ranks on the first one only"
        yield finding("deepspeed-launcher", "command", found, "a launch that does not need a hostfile")


def _nested_fix(step: Step) -> str:
    if not isinstance(step.distribution, Mpi):
        return Rule.named("nested-launcher").fix
    if processes_per_instance(step.distribution) > 1:
        return "start the script with python: mpirun has started every rank"
    return "start the script with python, and set process_count_per_instance to the number of ranks for mpirun to start"


def instances_apart(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if the launcher of a step's command starts a world on each instance."""
    launcher, text = _launch_in(step)
    by_node = isinstance(step.distribution, (Mpi, PyTorch)) and processes_per_instance(step.distribution) == 1
    if not launcher or launcher in OF_ALL_INSTANCES or not by_node or step.instance_count == 1:
        return
    if not _JOINS.search(text):
        rank, distribution = "$NODE_RANK", ""
        if isinstance(step.distribution, Mpi):
            rank, distribution = "$OMPI_COMM_WORLD_RANK", ", or use the distribution pytorch"
        option = "--machine_rank" if launcher == "accelerate launch" else "--node-rank"
        found = f"{launcher} on {step.instance_count} instances, without the instance's rank"
        found += ": each instance trains alone"
        fix = f"start the script with python, and set process_count_per_instance to the number of GPUs{distribution}; "
        fix += f"or pass {launcher} {option} {rank}, the number of instances and the address of the first"
        yield Problem("command", found, "one launch of all instances", fix)


_OF_RANK = {"RANK": OPEN_MPI.rank, "LOCAL_RANK": OPEN_MPI.local_rank, "WORLD_SIZE": OPEN_MPI.world_size}
PYTORCH_ONLY = (*_OF_RANK, "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
"""Variables of a rank that Azure ML sets for pytorch, and mpirun does not set."""

_AS_NODE_RANK = re.compile(
    r"(?:--(?:node|machine)[_-]rank(?:=|\s+)|\bNODE_RANK=|\bNODE_RANK[\"']]\s*=\s*(?:str\()?os\.)"
    r"(?:[\"']?\$\{?|environ(?:\.get\(|\[)[\"'])(?P<name>OMPI_COMM_WORLD_(?:NODE_)?RANK)\b"
)
_SETS_ANY = frozenset({".", "eval", "source"})
"""Programs that may set any variable."""
_BY_LAUNCHER = frozenset({"RANK", "LOCAL_RANK"})
"""Variables that a launcher sets for each rank that it starts."""


def mpi_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable of a step's command that has another meaning, or no value, under MPI."""
    if not isinstance(step.distribution, Mpi):
        return
    yield from _not_set(step)
    matches = ((place, _AS_NODE_RANK.search(text)) for place, text, _ in _texts(step, python=True))
    place, match = next(((place, match) for place, match in matches if match), ("", None))
    if match and (match["name"] != OPEN_MPI.rank or processes_per_instance(step.distribution) > 1):
        found = f"${match['name']} as the rank of the instance in {place}: it is the rank of a process"
        expected = "the rank of the instance"
        yield finding("mpi-variable", "command", found, expected, f"write {_node_rank(step)}")


def _not_set(step: Step) -> Iterator[Problem]:
    if any(simple.program in _SETS_ANY for simple in simple_commands(step.command)):
        return
    # A launcher sets these for its ranks. `expanded_once` reports those that are expanded before it starts.
    by_launcher = _BY_LAUNCHER if launcher_of(step.command) else frozenset()
    names = {*expansions(step.command, with_default=False)} - by_launcher
    for name in PYTORCH_ONLY:
        if name in names and name not in step.environment_variables and not _sets(step.command, name):
            found = f"${name}, which is empty: Azure ML sets it for the distribution pytorch, and mpirun does not"
            fix = f"use {_instead(step, name)}, or the distribution pytorch"
            yield finding("mpi-variable", "command", found, "a variable that an MPI job has", fix)


def _sets(command: str, name: str) -> bool:
    """Return whether a shell command assigns a variable."""
    return re.search(rf"(?<![\w$-]){name}=|\b(?:for|read)\s+{name}\b", command) is not None


def _instead(step: Step, name: str) -> str:
    """Return the counterpart of a PyTorch variable in an MPI job."""
    if name in _OF_RANK:
        return f"${_OF_RANK[name]}"
    if name == "NODE_RANK":
        return _node_rank(step)
    if name == "MASTER_PORT":
        return "a free port, such as 6105"
    return "${AZ_BATCH_MASTER_NODE%:*}" if step.instance_count > 1 else "$AZ_BATCHAI_MPI_MASTER_NODE"


def _node_rank(step: Step) -> str:
    """Return a shell expression for the rank of the instance. Ranks fill one instance after another."""
    processes = processes_per_instance(step.distribution)
    return f"${OPEN_MPI.rank}" if processes == 1 else f"$(({OPEN_MPI.rank} / {processes}))"


def expanded_once(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if the shell expands a rank's variable before a launcher starts the ranks."""
    launcher = launcher_of(step.command)
    if not launcher and step.tags.get(LAUNCH) != PER_NODE:
        return
    name = next((each for each in expansions(step.command, with_default=True) if each in _BY_LAUNCHER), "")
    if name:
        found = f"${name} in front of the ranks that {launcher or 'the command'} starts: it is expanded once"
        fix = f'read it in the script: os.environ["{name}"]'
        yield finding("rank-expanded-once", "command", found, f"no ${name} in the command", fix)


def rank_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable of a rank that is set to the same value for all ranks."""
    if isinstance(step.distribution, Single) or (launcher_of(step.command) and step.instance_count == 1):
        return
    names = [name for name in PYTORCH_ONLY if name != "NODE_RANK"]
    if isinstance(step.distribution, Mpi):  # mpirun sets no master
        names = [name for name in names if not name.startswith("MASTER")]
    world = str(processes_per_instance(step.distribution) * step.instance_count)
    assigned = dict(item for each in simple_commands(step.command) for item in each.assigned.items())
    for name in names:
        where, value = f"environment_variables.{name}", step.environment_variables.get(name)
        if value is None:
            where, value = "command", assigned.get(name)
        if isinstance(value, str) and "$" not in value and (name, value) != ("WORLD_SIZE", world):
            found = f"{name} is {value} in every rank, below the distribution {step.distribution.type}"
            yield finding("rank-variable", where, found, "the value that the launch gives to each rank")


def option_lines(_scope: Scope, step: Step) -> Iterator[Problem]:
    found = next((each.program for each in simple_commands(step.command) if each.program.startswith("--")), "")
    if found:
        expected = "options on the line of their program"
        yield finding("option-line", "command", f"a line that begins with {found}", expected)


def line_ends(_scope: Scope, step: Step) -> Iterator[Problem]:
    for name, text, by_shell in _scripts(step):
        if "\r\n" in text if by_shell else text.startswith("#!") and "\r\n" in text[: text.find("\n") + 1]:
            fix = Rule.named("line-ends").fix.replace("FILE", name)
            yield Problem("command", f"{name}, whose lines end with \\r\\n", "lines that end with \\n", fix)
