"""Faults that are injected into real ranks of a script that knows nothing of allranks."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.variables import ELASTIC_INSTANCES
from allranks.errors import InputError
from allranks.history.records import RunRecord, Status
from allranks.local.engine import resume
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.graph import Code, Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace
from allranks_lab.faults import injection
from mpirun import needs_mpirun

pytestmark = pytest.mark.slow  # starts an engine

Runner = Callable[..., RunRecord]

# Each rank ends only if one has saved before.
SCRIPT = """
import os, pathlib, signal, sys, time
from allranks_lab.faults.in_rank import report_step

folder = pathlib.Path(sys.argv[1])
with open(folder / f"starts_{os.environ['RANK']}", "a") as file:
    file.write("x")
if any(folder.glob("saved_*")):
    sys.exit()
if "save" in sys.argv:
    def save(*_):
        if os.environ["RANK"] == "3":  # longer than ranks have after the failure of another one
            time.sleep(2.5)
        (folder / f"saved_{os.environ['RANK']}").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, save)
report_step(1)
time.sleep(1000)
"""


def _step(folder: Path, arguments: str = "", script: str = SCRIPT, processes: int = 2) -> Step:
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "train.py").write_text(script)
    code = Code(str(folder / "code"), digest.of_path(folder / "code"))
    command = f"python train.py ${{{{outputs.state}}}} {arguments}"
    outputs = (Output("state", "uri_folder"),)
    return Step("train", command, code=code, distribution=PyTorch(processes), instance_count=2, outputs=outputs)


def test_a_killed_rank(tmp_path: Path, kind: str, run_steps: Runner) -> None:
    record = run_steps(_step(tmp_path), instances=kind, faults=["kill:rank=3,step=1"])
    train = record.step("train")
    assert train.status is Status.FAILED
    assert (train.verdict.rank, train.verdict.instance_rank, train.verdict.signal) == (3, 1, "SIGKILL")
    where = f"rank 3 on instance 1 ({train.ranks[3].hostname})"
    assert train.notes == [f"SIGKILL sent to {where} (injected by --fault kill:rank=3,step=1)"]
    assert [fault.fault for fault in record.faults] == ["kill:rank=3,step=1"]


def test_an_evicted_instance(tmp_path: Path, kind: str, run_steps: Runner) -> None:
    """The step starts again with its outputs in place, although it has no retries."""
    record = run_steps(_step(tmp_path, "save"), instances=kind, faults=["evict:instance=1,step=1"])
    train = record.step("train")
    assert (record.status, train.attempt) == (Status.COMPLETED, 1)
    written = {path.name: path.read_text() for path in Path(train.outputs[0].path).iterdir()}
    on_the_instance = {name: text for name, text in written.items() if name[-1] in "23"}
    assert on_the_instance == {"saved_2": "", "saved_3": "", "starts_2": "xx", "starts_3": "xx"}
    assert {"starts_0", "starts_1"} < written.keys()
    assert [attempt.status for attempt in train.attempts][:1] == [Status.FAILED]


# All ranks end together, as when they have saved a checkpoint.
ENDS = """
import pathlib, signal, sys, time
from allranks_lab.faults.in_rank import report_step

saved = pathlib.Path(sys.argv[1], "saved")
if saved.exists():
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: saved.touch())
report_step(1)
while not saved.exists():
    time.sleep(0.01)
sys.exit(143)
"""


@needs_mpirun
def test_an_evicted_instance_under_mpirun(tmp_path: Path, run_steps: Runner) -> None:
    """The step starts again when its ranks have ended, although mpirun still sleeps, and the grace period is long."""
    step = replace(_step(tmp_path, script=ENDS), distribution=Mpi(2))
    record = run_steps(step, instances="loopback", faults=["evict:instance=1,step=1,grace=1h"])
    assert (record.status, record.step("train").attempt) == (Status.COMPLETED, 1)


STEPS = """
import os, pathlib, sys
from allranks_lab.faults.in_rank import report_step

for step in range(1, 8):
    with open(pathlib.Path(sys.argv[1], os.environ["RANK"]), "a") as file:
        file.write(f"{step} ")
    report_step(step)
"""


def test_a_fault_at_a_training_step(tmp_path: Path, run_steps: Runner) -> None:
    """It happens between that step and the next one, and once, although the next attempt reaches the step too."""
    record = run_steps(_step(tmp_path, script=STEPS), faults=["kill:rank=3,step=5"], retries=1)
    train = record.step("train")
    assert (record.status, train.attempt, len(record.faults)) == (Status.COMPLETED, 1, 1)
    assert (Path(train.outputs[0].path) / "3").read_text() == "1 2 3 4 5 1 2 3 4 5 6 7 "


TORCH = """
import torch

weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(1, 8):
    print(step, flush=True)
    weight.sum().backward()
    optimizer.step()
"""


def test_the_training_steps_of_a_script_that_reports_none(tmp_path: Path, run_steps: Runner) -> None:
    pytest.importorskip("torch")
    record = run_steps(_step(tmp_path, script=TORCH, processes=1), faults=["kill:rank=1,step=3"])
    verdict = record.step("train").verdict
    assert (verdict.rank, verdict.signal, verdict.tail) == (1, "SIGKILL", ("1", "2", "3"))


ELASTIC = """
import os, pathlib, sys, time
from allranks_lab.faults.in_rank import report_step

starts = pathlib.Path(sys.argv[1], os.environ["RANK"])
with open(starts, "a") as file:
    file.write(os.environ["WORLD_SIZE"])
report_step(1)
if os.environ["WORLD_SIZE"] in sys.argv[2] or len(starts.read_text()) == 1:
    time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("back", "waits_on", "started", "notes"),
    [
        (
            "never",
            "",
            "64",
            ["evicted: it starts again on 2 of 3 instances, with its outputs in place"],
        ),
        (
            "700ms",
            "4",
            "64?6",
            [
                "evicted: it starts again on 2 of 3 instances, with its outputs in place",
                "an instance is back: SIGTERM sent to all ranks",
                "evicted: it starts again, with its outputs in place",
            ],
        ),
    ],
)
def test_an_elastic_step(
    tmp_path: Path,
    run_steps: Runner,
    monkeypatch: pytest.MonkeyPatch,
    back: str,
    waits_on: str,
    started: str,
    notes: list[str],
) -> None:
    """It continues on fewer instances, and on all of them when the evicted one is back."""
    monkeypatch.setattr(injection, "LATEST", 60.0)  # seconds: each rank has written
    step = _step(tmp_path, f"'{waits_on}'")
    (tmp_path / "code" / "train.py").write_text(ELASTIC)
    step = replace(step, instance_count=3, environment_variables={ELASTIC_INSTANCES: "2:3"})
    record = run_steps(step, faults=[f"evict:instance=1,step=1,back={back}"])
    train = record.step("train")
    assert (record.status, train.instance_count) == (Status.COMPLETED, 2 if back == "never" else 3)
    assert [note for note in train.notes if "injected" not in note] == notes
    # A rank may end before it has written.
    assert re.fullmatch(started, (Path(train.outputs[0].path) / "0").read_text())


def test_too_few_instances_remain(tmp_path: Path, run_steps: Runner) -> None:
    step = replace(_step(tmp_path, "save"), environment_variables={ELASTIC_INSTANCES: "2:2"})
    train = run_steps(step, faults=["evict:instance=1,after=300ms,back=never"]).step("train")
    assert (train.status, train.attempt) == (Status.FAILED, 0)
    expected = "instance 1 was evicted and does not come back: 1 of 2 instances remain, and the step needs 2"
    assert train.verdict.reason == expected


def test_a_fault_does_not_happen_again_when_the_run_is_resumed(
    tmp_path: Path, run_steps: Runner, workspace: Workspace
) -> None:
    faults = ["kill:rank=0,step=2", "kill:rank=1,step=9"]
    record = run_steps(_step(tmp_path, script=STEPS), faults=faults)
    assert record.status is Status.FAILED
    record = resume(record.id, workspace, Options(instances="loopback", faults=faults))
    assert (record.status, len(record.faults)) == (Status.COMPLETED, 1)
    assert "--fault kill:rank=1,step=9 did not happen" in record.notes[-1]


SLOW = """
import os, time

end = time.monotonic() + 1
while time.monotonic() < end:
    pass
print("share", time.process_time())
"""


def test_a_slow_rank_and_a_slow_start(tmp_path: Path, run_steps: Runner) -> None:
    """Another run does not reuse the result, which may have suffered."""
    step = _step(tmp_path, script=SLOW, processes=1)
    record = run_steps(step, faults=["slow-rank=0,factor=4", "slow-start=1,time=500ms"])
    first, last = record.step("train").ranks
    (begun,) = (fault.time for fault in record.faults if fault.fault.startswith("slow-start"))
    assert float(Path(first.log).read_text().split()[1]) < 0.6
    assert last.started - begun >= 0.5
    assert run_steps(step).step("train").reused_from is None


HANG = """
import os
from allranks_lab.faults.in_rank import report_step

report_step(1)
print("after the first step")
if os.environ["RANK"] == "0":
    report_step(2)
"""


def test_a_rank_that_hangs(tmp_path: Path, run_steps: Runner) -> None:
    """It hangs until it is killed, when another rank reaches the second step."""
    record = run_steps(_step(tmp_path, script=HANG), faults=["hang:rank=1,step=1", "kill:rank=1,step=2"])
    verdict = record.step("train").verdict
    assert (verdict.rank, verdict.signal, verdict.tail) == (1, "SIGKILL", ())


MACHINE = """
import os, pathlib, socket, sys, time
from allranks_lab.faults.in_rank import report_step

if os.environ["RANK"] == "0":
    connection, _ = socket.create_server((os.environ["MASTER_ADDR"], 5999)).accept()
    while data := connection.recv(1 << 16):
        connection.sendall(data)
    sys.exit()

folder, connection = pathlib.Path(sys.argv[1]), None
while connection is None:
    try:
        connection = socket.create_connection((os.environ["MASTER_ADDR"], 5999))
    except OSError:
        time.sleep(0.01)
connection.settimeout(60)


def sent():
    start = time.monotonic()
    try:
        connection.sendall(b"x")
        connection.recv(1)
    except TimeoutError:
        return "lost"
    return "late" if time.monotonic() - start >= 0.2 else "at once"


report_step(1)
print(sent())
(folder / "first").write_text("first")
report_step(2)
try:
    (folder / "second").write_text("second")
except OSError as error:
    print(error.strerror, (folder / "first").read_text())
report_step(3)
connection.settimeout(0.5)
print(sent())
report_step(4)
bytearray(1 << 28)
"""


def test_an_instance_without_network_disk_and_memory(tmp_path: Path, rack_works: bool, run_steps: Runner) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    faults = ["delay:time=200ms,instance=1,step=1", "disk-full=1,step=2", "cut=1,step=3", "oom=1,step=4"]
    record = run_steps(_step(tmp_path, script=MACHINE, processes=1), instances="rack", faults=faults)
    train = record.step("train")
    assert Path(train.ranks[1].log).read_text().splitlines()[:3] == [
        "late",
        "No space left on device first",
        "lost",
    ]
    assert (train.verdict.rank, train.verdict.reason) == (1, "MemoryError")
    with pytest.raises(InputError, match="instances of the kind loopback\n  expected: --instances rack"):
        run_steps(_step(tmp_path / "other"), faults=faults[:1])
