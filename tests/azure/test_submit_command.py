"""`allranks submit`: what is wrong is told before anything is sent; then the run is sent, remembered and watched."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Command, add_step, command, only_run, project, quick
from fake import computes
from fake.computes import Compute
from fake.jobs import Job
from fake.service import FakeAzure

from allranks.azure import watch
from allranks.history import locks, stored
from allranks.history.records import Status
from allranks.workspace import Workspace
from allranks_command import allranks, content, write

__all__ = ["command", "project", "quick"]


def on_poll(monkeypatch: pytest.MonkeyPatch, *steps: Any) -> None:
    """What happens in the service between one look at the run and the next."""
    left = list(steps)
    clock = SimpleNamespace(time=time.time, sleep=lambda seconds: left.pop(0)())
    monkeypatch.setattr(watch, "time", clock)


WRONG: dict[str, tuple[list[str], list[str]]] = {
    "a size for a step that is none": (
        ["pipeline.yaml", "--size", "trian=Standard_ND96asr_v4"],
        ["--size trian=...", "one of: prepare, train"],
    ),
    "a size and a cluster": (
        ["pipeline.yaml", "--size", "Standard_ND96asr_v4", "--compute", "gpu-cluster"],
        ["--size Standard_ND96asr_v4", "remove one"],
    ),
    "more processes than GPUs": (
        ["pipeline.yaml", "--size", "Standard_NC24ads_A100_v4"],
        ["step train", "2 processes on the 1 GPU of Standard_NC24ads_A100_v4", "1: a process for each GPU"],
    ),
    "CUDA that does not run on the GPUs": (
        ["v100.yml"],
        ["the environment has CUDA 13.0, which does not run on the V100 of Standard_ND40rs_v2", "variant.sh cuda12"],
    ),
    "CUDA that does not run on the GPUs of a step within a pipeline": (
        ["nested.yml"],
        [
            "step tune.train, key resources.instance_type",
            "CUDA 13.0, which does not run on the V100 of Standard_ND40rs_v2",
        ],
    ),
    "InfiniBand on a size without": (
        ["without_infiniband.yml"],
        ["the job asks for InfiniBand, and Standard_NC96ads_A100_v4 has none", "use Standard_ND96asr_v4"],
    ),
    "a compute that is not there": (
        ["pipeline.yaml", "--compute", "gpu-clutser"],
        ["no compute gpu-clutser", "one of: cpu-cluster, gpu-cluster", "did you mean gpu-cluster?"],
    ),
    "more instances than the cluster has": (
        ["pipeline.yaml", "--set", "instances=5"],
        ["step train, key resources.instance_count", "5 instances; cpu-cluster has at most 4"],
    ),
    "a size that the region lacks": (
        ["pipeline.yaml", "--size", "Standard_ND96isr_H100_v5"],
        ["Standard_ND96isr_H100_v5 is not available in eastus"],
    ),
    "more cores than the quota": (
        ["pipeline.yaml", "--size", "train=Standard_NC96ads_A100_v4"],
        ["2 x Standard_NC96ads_A100_v4 have 192 cores; the quota for dedicated cores of standardNCADSA100v4Family"],
    ),
    "an environment that is not there": (
        ["job.yml", "--set-environment"],
        ["environment torch is not registered in the workspace", "allranks register"],
    ),
    "a component that is not there": (
        ["registered.yml"],
        ["step a, key component", "component train is not registered in the workspace", "allranks register"],
    ),
    "steps without a place": (
        ["unplaced.yml"],
        [
            "steps a, b, key compute",
            "no compute is given",
            "--compute NAME, or --size SIZE",
            "settings.default_compute",
        ],
    ),
    "no place": (["nowhere.yml"], ["the job, key compute", "no compute is given", "--compute NAME"]),
    "a tag": (["pipeline.yaml", "--tag", "a"], ["--tag a", "KEY=VALUE"]),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_and_nothing_is_sent(
    arguments: list[str], said: list[str], azure: FakeAzure, command: Command, project: Path
) -> None:
    if "--set-environment" in arguments:
        arguments = ["environment.yml"]
        write(project, "environment.yml", json.dumps({**JOB, "environment": "azureml:torch:3"}))
    registered = {"type": "command", "component": "azureml:train:1"}
    compute = {"default_compute": "azureml:cpu-cluster"}
    write(project, "registered.yml", json.dumps({"type": "pipeline", "settings": compute, "jobs": {"a": registered}}))
    step = {"type": "command", "command": "echo", "environment": {"image": "x"}}
    write(project, "unplaced.yml", json.dumps({"type": "pipeline", "jobs": {"a": step, "b": step}}))
    write(project, "nowhere.yml", json.dumps({"command": "echo", "environment": {"image": "x"}}))
    before = content(project)
    done = command("submit", *arguments)
    assert (done.code, done.out) == (2, "")
    assert not [text for text in said if text not in done.err], done.err
    assert not [method for method, _, _ in azure.requests if method not in ("GET", "HEAD")]
    assert content(project) == before


JOB = {"command": "echo", "environment": {"image": "x"}, "compute": "azureml:cpu-cluster"}


def test_it_is_sent_and_remembered(azure: FakeAzure, command: Command, project: Path) -> None:
    done = command("submit", "pipeline.yaml", "--no-stream")
    run = only_run(azure)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == f"submitted {run.name} to lab"
    assert run.url() in done.out
    (record,) = stored.runs(Workspace(project / ".allranks"))
    assert (record.id, record.status, record.instances) == (run.name, Status.NOT_STARTED, "Azure ML lab")
    assert [step.name for step in record.steps] == ["prepare", "train"]
    assert record.submitted is not None
    assert record.submitted.studio.startswith(run.url())
    listed = command("runs").out
    assert run.name in listed
    assert "Azure ML lab" in listed


def test_a_job_that_is_no_pipeline(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish() -> None:
        only_run(azure).move("Completed")

    on_poll(monkeypatch, lambda: only_run(azure).move("Running"), finish)
    done = command("submit", "job.yml")
    assert (done.code, only_run(azure).kind) == (0, "Command"), done.err
    assert "completed" in done.out


def steps(azure: FakeAzure, *, error: str = "") -> list[Any]:
    """A run of the two steps, as it is seen from one look to the next."""

    def run() -> Job:
        return only_run(azure)

    def start() -> None:
        run().move("Running")
        add_step(azure, run().name, "prepare", std_log=b"ready\n")

    def train() -> None:
        azure.jobs[f"{run().name}-prepare"].move("Completed")
        logs = {f"std_log_process_{rank}": f"rank {rank}\n".encode() for rank in range(4)}
        if error:
            logs["std_log_process_2"] += b'Traceback (most recent call last):\n  File "x"\nValueError: no\n'
        add_step(azure, run().name, "train", error=error, **logs)

    def end() -> None:
        azure.jobs[f"{run().name}-train"].move("Failed" if error else "Completed")
        run().move("Failed" if error else "Completed")

    return [start, train, end]


def test_it_is_watched_until_it_completes(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    on_poll(monkeypatch, *steps(azure))
    done = command("submit", "pipeline.yaml")
    assert (done.code, done.err) == (0, "")
    words = [line.split()[1:3] for line in done.out.splitlines() if line[:2].isdigit()]
    assert words[1:] == [
        ["prepare", "Running"],
        ["prepare", "Completed"],
        ["train", "Running"],
        ["train", "Completed"],
    ]
    assert "✓ Two steps completed" in done.out
    assert f"studio  {only_run(azure).url()}" in done.out


def test_a_failure_ends_with_1_and_shows_why(
    azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_poll(monkeypatch, *steps(azure, error="Execution failed. User process exited with code 1."))
    done = command("submit", "pipeline.yaml")
    assert done.code == 1
    for said in ("Execution failed. User process", "ValueError: no", "allranks logs", "--rank 2", "studio"):
        assert said in done.out
    assert "allranks resume" not in done.out


def test_a_cancel_ends_with_1(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    on_poll(monkeypatch, lambda: only_run(azure).move("Canceled"))
    assert command("submit", "pipeline.yaml").code == 1


def test_json_is_the_record_alone(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    on_poll(monkeypatch, *steps(azure))
    done = command("submit", "pipeline.yaml", "--json")
    assert done.json["status"] == "Completed"
    assert done.json["submitted"]["workspace_name"] == "lab"
    assert "submitted" in done.err


def test_ctrl_c_stops_watching_alone(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    on_poll(monkeypatch, interrupt)
    done = command("submit", "pipeline.yaml")
    name = only_run(azure).name
    assert done.code == 130
    for said in (f"{name} continues on Azure ML", f"allranks logs {name} --follow", f"allranks cancel {name}"):
        assert said in done.err
    assert only_run(azure).status == "Queued"


def test_requests_that_fail_are_repeated(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run history does not know the run yet, then the service fails, then the sign-in expires: each is said once."""
    azure.history_lag = 3
    start, train, end = steps(azure)
    away, expired = (lambda status=status: azure.fail("/details", status, times=2) for status in (503, 401))
    on_poll(monkeypatch, int, int, int, start, away, int, expired, int, train, end)
    done = command("submit", "pipeline.yaml")
    assert done.code == 0, done.err
    for said in ("not found (404)", "sign in again, and watching continues"):
        assert done.out.count(said) == 1


def test_a_service_that_stays_away_ends_the_watch(
    azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PATIENCE", 1)
    on_poll(monkeypatch, lambda: azure.fail("/details", 503, times=100), int, int)
    done = command("submit", "pipeline.yaml")
    assert done.code == 1
    assert "continues on Azure ML" in done.err


def test_a_run_that_stops_without_an_end(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    start, *_ = steps(azure)
    on_poll(monkeypatch, start, lambda: only_run(azure).move("Paused"))
    done = command("submit", "pipeline.yaml")
    assert done.code == 1
    assert "Azure ML says Paused" in done.err
    assert f"allranks cancel {only_run(azure).name}" in done.err


def test_a_size_that_no_table_has(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    new = {**computes.SIZES["Standard_D4s_v5"], "name": "Standard_NC8ads_B300_v9"}
    monkeypatch.setitem(computes.SIZES, "Standard_NC8ads_B300_v9", new)
    done = command("submit", "job.yml", "--size", "standard_NC8ads_B300_v9", "--no-stream")
    assert done.code == 0, done.err
    assert "note: Standard_NC8ads_B300_v9 is not in the table of allranks doctor --sizes" in done.err
    sent = only_run(azure).properties
    assert sent is not None
    assert sent["resources"]["instanceType"] == "Standard_NC8ads_B300_v9"


def test_low_priority_has_a_quota_of_its_own(azure: FakeAzure, command: Command, project: Path) -> None:
    azure.low_priority_cores = 3
    spot = {"instance_type": "standard_d4s_V5", "instance_count": 1}
    job = {**JOB, "compute": "serverless", "resources": spot, "queue_settings": {"job_tier": "spot"}}
    write(project, "spot.yml", json.dumps(job))
    done = command("submit", "spot.yml", "--no-stream")
    assert done.code == 2
    assert "have 4 cores; the quota for all low-priority cores of the region is 3" in done.err
    write(project, "spot.yml", json.dumps({**job, "queue_settings": {"job_tier": "standard"}}))
    assert command("submit", "spot.yml", "--no-stream").code == 0


def test_a_registered_environment_and_component_are_found(azure: FakeAzure, command: Command, project: Path) -> None:
    from azure.ai.ml import load_component
    from azure.ai.ml.entities import Environment

    client = azure.client()
    client.environments.create_or_update(Environment(name="torch", version="3", image="python:3.12"))
    client.components.create_or_update(load_component(project / "train" / "component.yaml"))
    write(project, "environment.yml", json.dumps({**JOB, "environment": "azureml:torch:3"}))
    assert command("submit", "environment.yml", "--no-stream").code == 0
    write(project, "newer.yml", json.dumps({**JOB, "environment": "azureml:torch:4"}))
    done = command("submit", "newer.yml")
    assert done.code == 2
    assert "environment torch has no version 4" in done.err


def test_the_sizes_of_a_cluster_count(azure: FakeAzure, command: Command) -> None:
    azure.computes["small"] = Compute("small", "Standard_NC24ads_A100_v4", 4)
    done = command("submit", "pipeline.yaml", "--compute", "small")
    assert done.code == 2
    assert "2 processes on the 1 GPU of Standard_NC24ads_A100_v4" in done.err


def test_two_at_once_do_not_meet(azure: FakeAzure, command: Command, project: Path) -> None:
    """Each is another run, also while an engine works in the folder."""
    place = Workspace(project / ".allranks")
    with locks.hold(place.run_folder("another")):
        assert command("submit", "job.yml", "--no-stream").code == 0
        assert command("submit", "job.yml", "--no-stream").code == 0
    assert len({record.id for record in stored.runs(place)}) == 2
    assert not [record for record in stored.runs(place) if record.status is Status.INTERRUPTED]


def test_a_process_of_its_own(azure: FakeAzure, quick: None, project: Path) -> None:
    done = allranks("submit", "job.yml", "--no-stream", folder=project, **azure.environment)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"submitted {only_run(azure).name} to lab\n")
    assert not [secret for secret in azure.secrets if secret in done.out]
