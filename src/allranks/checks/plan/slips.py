"""Slips that can be seen in the text of a step: in its command, its scripts and its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.checks.plan.launchers import PYTORCH_ONLY, instead, launcher_of, scripts, sets, texts
from allranks.checks.plan.scope import Scope
from allranks.contract.commands import expansions, simple_commands
from allranks.contract.distributions import processes_per_instance
from allranks.contract.mpi import Mpi
from allranks.contract.single import Single
from allranks.errors import InputError, Problem, Rule, did_you_mean
from allranks.images import packages
from allranks.plan.graph import Step

_LEARN = 'Microsoft Learn, "CLI (v2) command job YAML schema"'

CONDA = Rule.error(
    "conda-dependencies",
    "A conda specification, or a requirements file that it names, has something that conda or pip does not install.",
    'conda, "Managing environments", Creating an environment file manually; PEP 508',
    "write: dependencies: [python=3.11, pip, {pip: [PACKAGE==VERSION]}]",
)
OPTION_LINE = Rule.error(
    "option-line",
    "A line of the command begins with an option. The shell ends a command at the end of its line, and would start the "
    "option as a program.",
    f"{_LEARN}: command; YAML 1.2, block scalars: | keeps line breaks, and > folds them",
    "write command: >- in place of |, or end the line before with a \\",
    accepted_by_sdk=True,
)
LINE_ENDS = Rule.error(
    "line-ends",
    "A script that a shell or the kernel reads has the line ends of Windows, which become a part of its words.",
    "POSIX, shell command language: a carriage return is not a blank; Linux, execve(2): the interpreter's path is the "
    "rest of the first line",
    "convert it: sed -i 's/\\r$//' FILE; to keep it so in Git, add to .gitattributes: *.sh text eol=lf",
    accepted_by_sdk=True,
)
RANK_VARIABLE = Rule.warning(
    "rank-variable",
    "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR or MASTER_PORT has a fixed value, where the launch sets it.",
    'Microsoft Learn, "Distributed GPU training guide": Azure ML sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK',
    "remove it",
)
NOT_GIVEN = Rule.warning(
    "variable-not-given",
    "The command, or a script of it, reads a variable AZ_BATCHAI_* or AZUREML_* that Azure ML does not set.",
    'Azure Batch, "Compute environment variables"; azureml-assets and azureml-examples, which read those that are set',
    "read one that is set",
)


def conda(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield what `--environment venv` cannot read of a conda specification, or conda does not install."""
    try:
        packages.of(step.environment) if step.environment.definition else None
    except InputError as error:
        for problem in error.problems:
            yield CONDA.problem("environment", f"{problem.where}: {problem.found}", problem.expected, problem.fix)


def option_lines(_scope: Scope, step: Step) -> Iterator[Problem]:
    found = next((each.program for each in simple_commands(step.command) if each.program.startswith("--")), "")
    if found:
        yield OPTION_LINE.problem("command", f"a line that begins with {found}", "options on the line of their program")


def line_ends(_scope: Scope, step: Step) -> Iterator[Problem]:
    for name, text, by_shell in scripts(step):
        if "\r\n" in text if by_shell else text.startswith("#!") and "\r\n" in text[: text.find("\n") + 1]:
            fix = LINE_ENDS.fix.replace("FILE", name)
            yield LINE_ENDS.problem("command", f"{name}, whose lines end with \\r\\n", "lines that end with \\n", fix)


def rank_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable of a rank that has the same value for all."""
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
            yield RANK_VARIABLE.problem(where, found, "the value that the launch gives to each rank")


_READ = re.compile(r"environ(?:\.get\(|\[)\s*[\"'](\w+)[\"']\s*[\])]|getenv\(\s*[\"'](\w+)[\"']\s*\)")
_GIVEN = frozenset(
    {
        "AZUREML_ARM_PROJECT_NAME", "AZUREML_ARM_RESOURCEGROUP", "AZUREML_ARM_SUBSCRIPTION", "AZUREML_RUN_ID",
        "AZUREML_ARM_WORKSPACE_NAME", "AZUREML_CR_DISTRIBUTED_CONFIG", "AZUREML_CR_NODE_RANK", "AZUREML_EXPERIMENT_ID",
        "AZUREML_NODE_COUNT", "AZUREML_PROCESS_NAME", "AZUREML_ROOT_RUN_ID", "AZUREML_RUN_TOKEN",
        "AZUREML_SERVICE_ENDPOINT", "AZUREML_WORKSPACE_ID", "AZ_BATCHAI_MPI_MASTER_NODE", "AZ_BATCHAI_TASK_INDEX",
        "AZ_BATCH_HOST_LIST", "AZ_BATCH_IS_CURRENT_NODE_MASTER", "AZ_BATCH_MASTER_NODE", "AZ_BATCH_NODE_LIST",
    }
)  # fmt: skip
"""The variables that Azure ML sets, as far as public code reads them."""
_INSTEAD = {
    "LIST": "AZ_BATCH_HOST_LIST",
    "RANK|INDEX|ID$": "AZ_BATCHAI_TASK_INDEX",
    "COUNT|NUM|NODES": "AZUREML_NODE_COUNT",
}
"""What is set in place of the variables of Batch AI, by a pattern of their names."""


def variables_not_given(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable with a name of Azure ML's that is not set."""
    of_step = [*texts(step, python=True)]
    everything = "\n".join(text for _, text, _ in of_step)
    for place, text, by_shell in of_step:
        read = {*expansions(text, with_default=False)} if by_shell else set[str]()
        read |= {first or second for first, second in _READ.findall(text)}
        for name in sorted(read - _GIVEN - step.environment_variables.keys()):
            # Of Azure ML's own there are more than are known; those of Batch AI are no longer given.
            near = did_you_mean(name, _GIVEN, cutoff=0.9) if name.startswith(("AZUREML_", "AZ_BATCH_")) else ""
            if sets(everything, name) or not (near or name.startswith("AZ_BATCHAI_")):
                continue
            other = next((each for words, each in _INSTEAD.items() if re.search(words, name)), "")
            if "MASTER" in name or "INIT" in name:
                other = instead(step, "MASTER_ADDR").lstrip("$")
            fix = near or (f"read {other}" if other else NOT_GIVEN.fix)
            yield NOT_GIVEN.problem("command", f"{name}, which {place} reads and nothing sets", "one that is set", fix)
