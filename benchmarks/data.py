"""What a step's data costs: 1,000 files of 1 MB, as an input that has not changed, a copy, and an output.

    unchanged  a step is run again and reused. Its cost is (seconds of that run - seconds of the same without the data).
               Peer: sha256sum of the same files, which is what it takes to know that they have not changed by reading
    first      the first run of a step with the data, which reads all of it: from the start of the run to that of the
               step, less the same without the data. Peer: sha256sum
    download   an instance gets a copy: from the start of the step to that of its rank. Peer: cp -r
    upload     an instance's folder becomes the step's output, with its digest: from the end of the rank to that of the
               step. Peer: cp -r and sha256sum, one after the other

All files are in the page cache. Each figure is the median of TIMES runs, ours and the peer's in turn.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, finish

from allranks.history.records import RunRecord, Status
from allranks.local.attempt.digests import UNSETTLED
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as PathValue
from allranks.workspace import Workspace

FILES, SIZE = 1000, 1_000_000
TIMES = 5
GOALS = {"unchanged": 0.1, "first": 1.2, "download": 1.3, "upload": 1.0}
"""Of the time, over the peer's."""

_folders: list[Path] = []
"""Of the current round. They are removed after it, because each has a copy of the data."""


@dataclass(frozen=True)
class Case:
    """ours, peer: return seconds"""

    name: str
    ours: Callable[[], float]
    peer_name: str
    peer: Callable[[], float]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-data-") as parent:
        data = Path(parent) / "data"
        data.mkdir()
        for number in range(FILES):
            (data / f"{number:04}").write_bytes(os.urandom(SIZE))
        time.sleep(UNSETTLED)  # the digest of a file that has just changed is not saved
        figures = [_figure(case) for case in _cases(Path(parent), data)]
    finish(f"The data of a step: {FILES} files of {SIZE // 1_000_000} MB", figures)


def _cases(parent: Path, data: Path) -> Sequence[Case]:
    reads, nothing = (_plan(ports) for ports in ((_input(data, "ro_mount"),), ()))
    known = Workspace(parent / "known")
    for plan in (reads, nothing):
        _run(plan, known)

    def unchanged() -> float:
        return _seconds(lambda: _run(reads, known)) - _seconds(lambda: _run(nothing, known))

    def first() -> float:
        def wait(plan: Plan) -> float:
            record = _run(plan, _new_workspace(parent))
            return (record.steps[0].started or 0.0) - record.created

        return wait(reads) - wait(nothing)

    def download() -> float:
        (step,) = _run(_plan((_input(data, "download"),), deterministic=False), _new_workspace(parent)).steps
        return (step.ranks[0].started or 0.0) - (step.started or 0.0)

    def upload() -> float:
        command = "cp -r ${{inputs.data}}/. ${{outputs.out}}"
        plan = _plan((_input(data, "ro_mount"),), command, outputs=(Output("out", "uri_folder", "upload"),))
        (step,) = _run(plan, _new_workspace(parent)).steps
        return (step.ended or 0.0) - (step.ranks[0].ended or 0.0)

    def read() -> float:
        return _seconds(lambda: _shell("sha256sum *", data))

    def copy() -> float:
        return _seconds(lambda: _shell(f"cp -r . {_new_folder(parent)}", data))

    def copy_and_read() -> float:
        target = _new_folder(parent)
        return _seconds(lambda: _shell(f"cp -r . {target} && cd {target} && sha256sum *", data))

    return (
        Case("unchanged", unchanged, "sha256sum", read),
        Case("first", first, "sha256sum", read),
        Case("download", download, "cp -r", copy),
        Case("upload", upload, "cp -r; sha256sum", copy_and_read),
    )


def _figure(case: Case) -> Figure:
    rounds = []
    for _ in range(TIMES):
        rounds.append((case.ours(), case.peer()))
        while _folders:
            shutil.rmtree(_folders.pop())
    ours, peer = (statistics.median(values) for values in zip(*rounds, strict=True))
    return Figure(f"{case.name}, s (peer: {case.peer_name})", ours, peer, GOALS[case.name], "ratio")


def _plan(
    inputs: tuple[Input, ...],
    command: str = "true",
    *,
    outputs: tuple[Output, ...] = (),
    deterministic: bool = True,
) -> Plan:
    step = Step("step", command, inputs=inputs, outputs=outputs, deterministic=deterministic)
    return Plan("data", Graph((step,)))


def _input(data: Path, mode: str) -> Input:
    return Input("data", "uri_folder", PathValue(str(data)), mode)


def _run(plan: Plan, workspace: Workspace) -> RunRecord:
    record = run(plan, workspace, Options(track=False))
    if record.status is not Status.COMPLETED:
        raise RuntimeError(f"the run ended {record.status}: {record.verdict}")
    return record


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _shell(command: str, folder: Path) -> None:
    subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _new_workspace(parent: Path) -> Workspace:
    return Workspace(_new_folder(parent))


def _new_folder(parent: Path) -> Path:
    _folders.append(Path(tempfile.mkdtemp(dir=parent)))
    return _folders[-1]


if __name__ == "__main__":
    main()
