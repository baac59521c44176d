"""Replace the remote data of a plan's inputs by local copies and samples."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path as FilePath

from allranks.checks.plan.data import wrong_path
from allranks.checks.plan.scope import of_plan
from allranks.errors import InputError, Problem
from allranks.local.data import cache, samples
from allranks.local.data.storage import StorageError
from allranks.plan.graph import Plan
from allranks.plan.ports import PRIMITIVES, Input, Path
from allranks.plan.walk import changed, walk
from allranks.sdk.paths import is_downloadable
from allranks.sdk.yaml_lines import with_key_lines
from allranks.secrets import redact
from allranks.workspace import Workspace

_SAMPLED = frozenset({"uri_file", "uri_folder", "mltable"})
"""Types of ports that can be sampled. A sample of a model would be useless."""


def fetch_data(plan: Plan, workspace: Workspace, *, offline: bool = False, sample: str = "") -> tuple[Plan, list[str]]:
    """Fetch the remote data of a plan, and make samples. Return the plan with paths on this machine in place of URIs,
    and a line for each input that is a copy or a sample.

    offline: whether to use data in the cache only
    sample:  the amount of data for the run, such as 1% or 1000; "": the amount in the plan, by default all

    Raise InputError with a problem for each input that is not available.
    """
    samples.parse(sample)
    problems: list[Problem] = []
    found: dict[str, Path] = {}
    notes: list[str] = []
    for where, port, value in _data(plan):
        if value.path in found:
            continue
        try:
            local = _local(value, port.type, workspace, offline, sample)
        except StorageError as error:
            source = redact(value.source or value.path)
            copy = f"add a copy to allranks.yaml:\ndata:\n  {source}: path/to/copy"
            fix = f"{error.fix}, or {copy}" if error.fix else copy
            problems.append(Problem(where, f"{source}: {error.reason}", "", fix, code="no-download"))
        except OSError as error:
            problems.append(Problem(where, f"its sample cannot be made: {error}", "", "use other data"))
        else:
            found[value.path] = local
            problems += wrong_path(where, port, local, True, "correct its type") if local is not value else ()
            notes += [f"input {port.name}: {local.note}"] if local.note else []
    if problems:
        raise InputError.of(with_key_lines(problems, plan.source))
    replaced: Plan = changed(plan, lambda value: found.get(value.path, value) if isinstance(value, Path) else value)
    return replaced, notes


def _local(
    value: Path,
    kind: str,
    workspace: Workspace,
    offline: bool,
    sample: str,
) -> Path:
    source, amount = value.source or value.path, samples.parse(sample or value.sample)
    amount = amount if (value.type or kind) in _SAMPLED else None
    text = amount.text if amount else ""
    if value.source and value.sample == text and FilePath(value.path).exists():
        return value
    if not (amount or is_downloadable(source)):
        return value
    path, parts, before = FilePath(source), [], None
    if is_downloadable(source):
        choose = partial(samples.choose, sample=amount) if amount else list
        copy = cache.local_copy(source, value.type or kind, offline=offline, part=text, choose=choose)
        path, parts, before = copy.path, [copy.text], copy.suffixes
    if amount:
        path, what = samples.make(path, amount, workspace.root / "samples", before)
        parts.append(what)
    # The copy is found again without a signature.
    return Path(str(path), value.type, redact(source), text, "; ".join(parts))


def _data(plan: Plan) -> Iterator[tuple[str, Input, Path]]:
    """Yield the data of all inputs, each with its location for messages and its port."""
    scope = of_plan(plan)
    places = [(scope.key(None, f"inputs.{port.name}"), port) for port in plan.graph.inputs]
    for path, node, _ in walk(plan.graph):
        places += [(f"step {path}, key inputs.{port.name}{node.at}", port) for port in node.inputs]
    for where, port in places:
        if isinstance(port.value, Path) and port.type not in PRIMITIVES:
            yield where, port, port.value
