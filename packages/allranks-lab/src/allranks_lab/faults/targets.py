"""The steps of a plan in which faults can happen."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from allranks.contract.distributions import processes_per_instance
from allranks.errors import Problem, did_you_mean, raise_any
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import INSTANCE_KINDS
from allranks.plan.graph import Plan, Step
from allranks.plan.walk import is_within, steps, without_labels
from allranks_lab.faults.faults import KINDS, OPTION, Fault, RandomFaults, read


def resolve(texts: Sequence[str], plan: Plan) -> tuple[Fault, ...]:
    """Return the faults of a run. Random faults are expanded for the largest step that they may affect.

    Raise InputError for a text that is not a fault, and for a fault that cannot happen in any step of the plan.
    """
    faults: list[Fault] = []
    found: list[Problem] = []
    for text in texts:
        fault = read(text)
        of_fault = list(_problems(fault, text, plan))
        found += of_fault
        if isinstance(fault, Fault):
            faults.append(fault)
        elif not of_fault:
            layouts = [_layout(step) for _, step in _steps(fault, plan)]
            faults += fault.expand(*max(layouts, key=lambda layout: layout[0] * layout[1]))
    raise_any(found)
    return tuple(faults)


def problems(texts: Sequence[str], plan: Plan, kind: InstanceKind) -> list[Problem]:
    """Return a problem for each fault that this kind does not support. Raise InputError as `resolve` does."""
    found = []
    able = " or ".join(name for name, each in INSTANCE_KINDS.items() if each.isolated)
    for fault in resolve(texts, plan):
        if KINDS[fault.kind].isolated and not kind.isolated:
            found.append(Problem(f"{OPTION} {fault}", f"instances of the kind {kind.name}", f"--instances {able}"))
        if fault.kind == "clock-skew" and faketime() is None:
            fix = "install libfaketime, such as: apt install libfaketime"
            found.append(Problem(f"{OPTION} {fault}", "no libfaketime on this machine", "", fix))
    return found


def faketime() -> Path | None:
    """Return the path of libfaketime; None if it is not installed. The kernel has no namespace for the time of day."""
    folders = [folder for pattern in ("lib*", "lib/*", "local/lib") for folder in Path("/usr").glob(pattern)]
    return next((path for folder in folders if (path := folder / "faketime" / "libfaketimeMT.so.1").exists()), None)


def is_at(fault: Fault | RandomFaults, path: str) -> bool:
    """Return whether a fault may happen in the step of this path, which may have labels of iterations."""
    return not fault.node or is_within(path, fault.node) or is_within(without_labels(path), fault.node)


def _steps(fault: Fault | RandomFaults, plan: Plan) -> list[tuple[str, Step]]:
    return [(path, step) for path, step in steps(plan.graph) if is_at(fault, path)]


def _layout(step: Step) -> tuple[int, int]:
    return step.instance_count, processes_per_instance(step.distribution)


def _problems(fault: Fault | RandomFaults, text: str, plan: Plan) -> Iterator[Problem]:
    where, found = f"{OPTION} {text}", _steps(fault, plan)
    if not found:
        paths = [without_labels(path) for path, _ in steps(plan.graph)]
        yield Problem(where, f"no step {fault.node}", f"a step: {', '.join(paths)}", did_you_mean(fault.node, paths))
    elif isinstance(fault, Fault):
        instances = max(step.instance_count for _, step in found)
        ranks = max(count * processes for count, processes in (_layout(step) for _, step in found))
        which = f"step {found[0][0]} has" if len(found) == 1 else "no step has more than"
        for name, number, count in (("rank", fault.rank, ranks), ("instance", fault.instance, instances)):
            if number is not None and number >= count:
                yield Problem(where, f"{name} {number}", f"{which} {count}: {_range(name, count)}")


def _range(name: str, count: int) -> str:
    return f"{name}s 0 to {count - 1}" if count > 1 else f"{name} 0"
