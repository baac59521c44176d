"""Check settings of a step: its environment, /dev/shm, variables, spot capacity, and its size on Azure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from allranks.checks.plan.launchers import launcher_of
from allranks.checks.plan.scope import Scope
from allranks.contract.distributions import processes_per_instance
from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.contract.templating import wire
from allranks.errors import InputError, Problem, Rule, finding
from allranks.hardware import shared_memory, sizes, traps
from allranks.images import packages
from allranks.plan.environment import cuda_version
from allranks.plan.graph import Step
from allranks.plan.ports import Literal

MANY = 8
"""Minimum number of workers per instance for a warning."""

DEFAULT = 2 << 30
MOST_FILES = 200


_OPTION = re.compile(
    r"--(?:data_?loader[_-])?(?:num[_-]workers|workers|number[_-]of[_-]workers)(?:=|\s+)['\"]?"
    r"(?:(?P<count>\d+)\b|\$\{\{\s*inputs\.(?P<input>[^\s{}]+)\s*}})"
)
_LITERAL = re.compile(r"\$\{\{\s*(?:inputs|outputs)\.[\w.\-]+\s*}}")
_RESUMES = re.compile(r"check_?-?point|ckpt|resum|load_state_dict|restore", re.IGNORECASE)
_CHECKPOINTS = re.compile(r"check_?-?point|ckpt|resum|snapshot|\bsave_dir\b", re.IGNORECASE)


def loader_workers(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if /dev/shm may be too small for the workers that the command requests."""
    workers = _workers(scope, step) * processes_per_instance(step.distribution)
    if workers >= MANY and step.shm_size <= DEFAULT:
        found = f"{workers} data loader workers on each instance, and {step.shm_size / (1 << 30):g} GiB of /dev/shm"
        expected = "space for the batches that each worker prefetches; otherwise the job ends with a bus error"
        yield finding("loader-workers", "resources.shm_size", found, expected)


def _workers(scope: Scope, step: Step) -> int:
    """Return the workers per process that the command requests; 0 if unknown."""
    most = 0
    for match in _OPTION.finditer(step.command):
        text = match["count"]
        if text is None:
            port = next((port for port in step.inputs if port.name == match["input"]), None)
            value = scope.value(port.value) if port else None
            text = wire(value.value) if isinstance(value, Literal) else ""
        most = max(most, int(text) if text.isdecimal() and len(text) < 6 else 0)
    return most


def bound_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable that refers to a port."""
    for name, value in step.environment_variables.items():
        match = _LITERAL.search(value) if isinstance(value, str) else None
        if match:
            found = f"{match[0]} is not replaced: Azure ML replaces ports only in the command"
            expected = "a literal; in a pipeline also ${{parent.inputs.NAME}}"
            fix = f"set it in the command: export {name}={match[0]}; ..."
            yield Problem(f"environment_variables.{name}", found, expected, fix)


def spot(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if a step on spot capacity would lose its work at an eviction."""
    if step.job_tier.lower() != "spot":
        return
    outputs = [port for port in step.outputs if _CHECKPOINTS.search(port.name)]
    if outputs and all(port.mode == "upload" for port in outputs):
        names_of_outputs = ", ".join(port.name for port in outputs)
        found = f"{names_of_outputs} has the mode upload: Azure ML uploads it when the step ends, not at an eviction"
        expected = "an output with the mode rw_mount"
        yield finding("spot-without-checkpoints", f"outputs.{outputs[0].name}", found, expected)
    elif not saves_checkpoints(step):
        found = "spot capacity, and no checkpoints among the inputs, the outputs and the command"
        expected = "a step that resumes after an eviction"
        yield finding("spot-without-checkpoints", "queue_settings.job_tier", found, expected)


def saves_checkpoints(step: Step) -> bool:
    """Return whether a step appears to save checkpoints, by its ports, its command or its code."""
    ports = [*(port.name for port in step.inputs), *(port.name for port in step.outputs)]
    names = [*ports, *step.environment_variables, step.command]
    return any(_CHECKPOINTS.search(name) for name in names) or _script_resumes(step)


def _script_resumes(step: Step) -> bool:
    """Return whether a Python file of the step's code appears to resume."""
    files = sorted(Path(step.code.folder).rglob("*.py"))[:MOST_FILES] if step.code else ()
    return any(_RESUMES.search(file.read_text(encoding="utf-8", errors="replace")) for file in files if file.is_file())


def moving_environment(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a finding if the environment of a step may change between runs."""
    environment = step.environment
    if is_moving(environment.image):
        fix = f"name a tag or a digest: {environment.image.removesuffix(':latest')}:TAG"
        yield finding("latest-image", "environment", f"image {environment.image}", "an image that does not change", fix)
    elif environment.version == "@latest":
        yield finding("latest-label", "environment", str(environment), "a version")


def joined(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Merge equal findings of moving environments and unmapped datastores: report each at its first step, with the
    names of the other steps."""
    groups: dict[object, list[Problem]] = {}
    for number, problem in enumerate(problems):
        is_of_several = problem.rule in ("latest-image", "latest-label", "unmapped-output")
        groups.setdefault(problem.found if is_of_several else number, []).append(problem)
    return tuple(_with_other_steps(first, others) for first, *others in groups.values())


def _with_other_steps(problem: Problem, others: list[Problem]) -> Problem:
    steps = ", ".join(other.where.partition(",")[0].removeprefix("step ") for other in others)
    also = f", also of step{'s' if others[1:] else ''} {steps}" if others else ""
    return replace(problem, found=f"{problem.found}{also}")


def is_moving(image: str) -> bool:
    """Return whether an image has no tag, or the tag latest, and no digest. False for no image, and for a variable."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return image != "" and "@" not in image and "$" not in image and tag in ("", "latest")


def conda(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the parts of a conda specification that `--environment venv` cannot read, or conda does not install."""
    try:
        packages.of(step.environment) if step.environment.definition else None
    except InputError as error:
        for each in error.problems:
            found = f"{each.where}: {each.found}"
            yield finding("conda-dependencies", "environment", found, each.expected, each.fix)


def size(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the problems of each size that the step names. The step can run on this machine, so these are warnings."""
    # A step may name several sizes, "A or B". Sizes that are not in the table, such as those without GPUs, are skipped.
    for known in map(sizes.known, filter(None, step.instance_type.split(" or "))):
        if known is not None:
            yield from Rule.named("size").mark(_size_problems(step, known, scope.today))


def _size_problems(step: Step, size: sizes.Size, today: date) -> Iterator[Problem]:
    wants_infiniband = traps.asks_for_infiniband(
        {name: str(value) for name, value in step.environment_variables.items()}
    )
    yield from traps.of_size(size, today, wants_infiniband=wants_infiniband)
    yield from traps.of_cuda(size, cuda_version(step.environment))
    # Only if the platform starts every rank. A launcher inside the step chooses its own number of processes.
    processes = getattr(step.distribution, "process_count_per_instance", None)
    if processes is not None and step.tags.get(LAUNCH) != PER_NODE:
        if processes > 1 or not launcher_of(step.command):
            yield from Rule.named("processes-per-gpu").mark(traps.of_processes(size, processes))
        too_small = shared_memory.problem(step.shm_size, processes, gpus=True)
        if too_small is not None:
            yield from Rule.named("shared-memory").mark([too_small])
