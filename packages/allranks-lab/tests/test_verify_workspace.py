"""`allranks verify-workspace` against the fake service, which shows a run of this machine: nothing differs, and each of
the seeded differences is named."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest
from commands import Command, add_step, only_run
from fake.blobs import Blob
from fake.jobs import Job
from fake.names import SUBSCRIPTION
from fake.service import FakeAzure
from fake.workspaces import DATASTORES

from allranks.azure import watch
from allranks.history.records import RunRecord
from allranks.plan.graph import Plan
from allranks_command import allranks
from allranks_lab.verification import command as verification
from allranks_lab.verification.comparison import KINDS, compare
from allranks_lab.verification.launch_records import read

PIPELINE = Path(__file__).resolve().parents[3] / "pipelines" / "verify_workspace.py"
# Of what an image has to be, what every machine is that runs these tests.
EXPECTATIONS = "every:\n  python: {version: '>=3.10'}\n"

Record = Any


def change(*keys: str | int, to: Any) -> Callable[[Record], None]:
    def apply(record: Record) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = to

    return apply


def remove(*keys: str) -> Callable[[Record], None]:
    def apply(record: Record) -> None:
        for key in keys[:-1]:
            record = record[key]
        del record[keys[-1]]

    return apply


def move_worker(record: Record) -> None:
    record["variables"]["TF_CONFIG"] = record["variables"]["TF_CONFIG"].replace('"index": 1', '"index": 0')


SEEDED: dict[str, tuple[str, int, Callable[[Record], None], set[tuple[str, str]]]] = {
    "a variable that is missing": (
        *("pytorch", 0, remove("variables", "AZUREML_PROCESS_NAME")),
        {("variable", "AZUREML_PROCESS_NAME")},
    ),
    "a variable that nobody expects": (
        *("pytorch", 1, change("variables", "AZUREML_NEW", to="contoso-research")),
        {("variable", "AZUREML_NEW")},
    ),
    "another size of the world": (
        *("pytorch", 2, change("variables", "WORLD_SIZE", to="8")),
        {("variable", "WORLD_SIZE"), ("rank", "readable")},
    ),
    "addresses of another form": (
        *("pytorch", 3, change("variables", "AZ_BATCH_NODE_LIST", to="10.0.0.4:22;10.0.0.5:22")),
        {("variable", "AZ_BATCH_NODE_LIST")},
    ),
    "a master by its name": (
        *("mpi", 0, change("variables", "AZ_BATCH_MASTER_NODE", to="contoso-node-0.internal:6000")),
        {("variable", "AZ_BATCH_MASTER_NODE"), ("rank", "master_addr")},
    ),
    "a worker with the number of another": (
        *("tensorflow", 1, move_worker),
        {("variable", "TF_CONFIG"), ("rank", "rank")},
    ),
    "an argument that a shell has changed": (
        *("pytorch", 0, change("arguments", 3, to="--texts")),
        {("argument", "3")},
    ),
    "another user": (*("mpi", 1, change("user", "uid", to=64998)), {("user", "uid")}),
    "a home that is missing": (*("mpi", 2, change("user", "home exists", to=False)), {("user", "home exists")}),
    "an input that can be written to": (
        *("pytorch", 1, change("paths", "input folder", "writable", to="by anybody")),
        {("path", "input folder: writable")},
    ),
    "another file system": (
        *("pytorch", 2, change("paths", "output records", "file system", to="fuse.blobfuse2")),
        {("mount", "output records: file system")},
    ),
    "a smaller /dev/shm": (
        *("pytorch", 3, change("paths", "/dev/shm", "bytes", to=65536)),
        {("mount", "/dev/shm: bytes")},
    ),
    "a lower limit": (
        *("mpi", 3, change("limits", "RLIMIT_NOFILE", to=[1, 1])),
        {("limit", "RLIMIT_NOFILE")},
    ),
    "a master whose name does not resolve": (
        *("pytorch", 0, change("instance", "masters resolve", "MASTER_ADDR", to=False)),
        {("instance", "MASTER_ADDR resolves")},
    ),
    "an instance that does not know its own name": (
        *("tensorflow", 0, change("instance", "hostname", to="contoso-node")),
        {("instance", "hostname")},
    ),
    "another version of a package": (
        *("mpi", 0, change("packages", "numpy", to="1.0")),
        {("image", "package numpy")},
    ),
    "other processors": (*("mpi", 1, change("instance", "processors", to=96)), {("machine", "processors")}),
}


def records(azure: FakeAzure, run: str, launch: str) -> dict[int, tuple[dict[str, Blob], str]]:
    """The container and the path of each rank's record in the workspace's storage, by rank."""
    _, store, prefix = azure.jobs[run].outputs[f"records_{launch}"]
    container = azure.blobs.container(DATASTORES[store])
    paths = [path for path in container if path.startswith(f"{prefix}rank-")]
    return {int(path.removeprefix(f"{prefix}rank-").partition(".")[0]): (container, path) for path in paths}


def change_record(azure: FakeAzure, run: str, launch: str, rank: int, apply: Callable[[Record], None]) -> None:
    container, path = records(azure, run, launch)[rank]
    record = json.loads(container[path].content)
    apply(record)
    container[path] = Blob(json.dumps(record).encode())


def show_run(azure: FakeAzure, job: Job, ran: dict[str, Any]) -> None:
    """Give a submitted pipeline the steps, logs and outputs of a run on this machine, as its record names them."""
    job.move("Running")
    for step in ran["steps"]:
        folder = Path(step["folder"], "user_logs")
        logs = {log.relative_to(folder).as_posix().removesuffix(".txt"): log for log in folder.rglob("*.txt")}
        contents = {name: log.read_bytes() for name, log in logs.items()}
        add_step(azure, job.name, step["name"], step["status"], **contents)
    for name, path in ran["outputs"].items():
        store, prefix = "workspaceblobstore", f"azureml/{job.name}/{name}/"
        job.outputs[name] = ("uri_folder", store, prefix)
        for file in (found for found in Path(path).rglob("*") if found.is_file()):
            blob = Blob(file.read_bytes())
            azure.blobs.container(DATASTORES[store])[f"{prefix}{file.relative_to(path).as_posix()}"] = blob
    job.move(ran["status"])


def interrupt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the first look at the run's state."""

    def interrupt(self: watch.Polling, *, changed: bool) -> None:
        monkeypatch.setattr(watch.Polling, "succeeded", succeeded)
        raise KeyboardInterrupt

    succeeded = watch.Polling.succeeded
    monkeypatch.setattr(watch.Polling, "succeeded", interrupt)


def run_here_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local run of the first call stands for those of later calls, which would be the same."""

    def run_here(self: verification._Verification, plan: Plan) -> RunRecord:
        if not local:
            local.append(actual(self, plan))
        return local[0]

    local: list[RunRecord] = []
    actual = verification._Verification._run_here
    monkeypatch.setattr(verification._Verification, "_run_here", run_here)


def differences(compared: list[dict[str, Any]]) -> set[tuple[str, str, str, tuple[int, ...]]]:
    return {
        (each["launch"], each["kind"], each["name"], tuple(each["ranks"]))
        for each in compared
        if each["local"] != each["azure"]
    }


def test_the_ports_of_a_cluster_of_ray_are_not_compared() -> None:
    def record(port: int) -> Record:
        variables = {"RAY_ADDRESS": f"10.0.0.4:{port}", "AZUREML_NODE_COUNT": "1", "AZUREML_CR_NODE_RANK": "0"}
        instance = {"hostname": "node", "address": "10.0.0.4"}
        return {"rank": 0, "variables": variables, "paths": {}, "user": {}, "instance": instance}

    assert not [each for each in compare("ray", [record(6379)], [record(35123)]) if each.differs]
    (other,) = [each for each in compare("ray", [record(6379)], [record(6379) | {"user": {"uid": 0}}]) if each.differs]
    assert (other.kind, other.name) == ("user", "uid")


@pytest.mark.recipe
def test_each_seeded_difference_is_found(tmp_path: Path) -> None:
    (tmp_path / "expect.yaml").write_text(EXPECTATIONS)
    launches = sorted({launch for launch, *_ in SEEDED.values()})
    until = [word for launch in launches for word in ("--until", f"record_{launch}")]
    settings = ("--set", "expectations=expect.yaml", "--instances", "loopback", "--no-track", "--json")
    done = allranks("run", PIPELINE, *until, *settings, folder=tmp_path)
    assert done.code == 0, done.err
    runs = tmp_path / ".allranks" / "runs" / done.json["id"]
    local = {launch: read(runs / f"record_{launch}" / "named-outputs" / "records") for launch in launches}
    for launch in launches:
        assert not [each for each in compare(launch, local[launch], local[launch]) if each.differs]
    for name, (launch, rank, apply, facts) in SEEDED.items():
        changed = copy.deepcopy(local[launch])
        apply(changed[rank])
        found = {(each.kind, each.name, each.ranks) for each in compare(launch, local[launch], changed) if each.differs}
        assert found == {(*fact, (rank,)) for fact in facts}, name


@pytest.mark.recipe  # five kinds of launch, preflight, collectives and a training, twice
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_report_names_what_differs_and_nothing_else(
    azure: FakeAzure, command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "POLL", 0.5)  # seconds; the machine has other things to do
    monkeypatch.setenv("COLUMNS", "300")
    (project / "expect.yaml").write_text(EXPECTATIONS)
    options = ("verify-workspace", "--pipeline", str(PIPELINE), "--instances", "loopback", "--json")
    launches = {"pytorch", "per_node", "mpi", "tensorflow", "single"}
    settings = ("--set", "expectations=expect.yaml", "--set", f"launches={' '.join(sorted(launches))}")
    where = ("--yes", "--compute", "cpu-cluster", *settings)

    # Too many instances are refused before anything runs; one would do.
    refused = command(*options, "--yes", "--compute", "cpu-cluster", "--set", "instance_count=9")
    assert refused.code == 2
    assert refused.err.count("--set instance_count=1") == 1
    assert not azure.jobs

    # Interrupted, and taken up again.
    interrupt_once(monkeypatch)
    run_here_once(monkeypatch)
    stopped = command(*options, *where)
    run = only_run(azure)
    assert stopped.code == 130
    assert f"compare it later  allranks verify-workspace --job {run.name}" in stopped.err
    ran = allranks(
        "run", PIPELINE, *settings, "--instances", "loopback", "--no-track", "--json", folder=project, patience=450
    )
    show_run(azure, run, ran.json)
    done = command(*options, "--job", run.name)
    assert done.code == 0, done.out + done.err
    assert differences(done.json["compared"]) == set()
    assert {each["kind"] for each in done.json["compared"]} == set(KINDS)
    assert {each["launch"] for each in done.json["compared"]} == launches
    assert set(done.json["steps"].values()) == {"Completed"}
    proof = project / "docs" / "azure-proof"
    names = {"README.md", "comparison.json", "preflight.json", "bandwidth.json", "bandwidth.svg", "verification.json"}
    assert {path.name for path in proof.iterdir()} == names
    assert "\nNone, in " in (proof / "README.md").read_text()
    put = [path.split("/")[-4:-2] for method, path, _ in azure.requests if method == "PUT" and "/versions/" in path]
    registered = {(kind, name) for kind, name in put if kind != "codes"}
    assert registered == {("components", "azureml_anonymous"), ("environments", "CliV2AnonymousEnvironment")}

    # Each difference is named, and what follows from it; no more. A step without records is no end of the report.
    for launch, rank, apply, _ in SEEDED.values():
        change_record(azure, run.name, launch, rank, apply)
    for launch, rank in (("per_node", 1), ("single", 0)):
        container, path = records(azure, run.name, launch)[rank]
        del container[path]
    again = command(*options, "--job", run.name)
    assert again.code == 1
    assert again.json["missing"] == ["single"]
    expected = {(launch, *fact, (rank,)) for launch, rank, _, facts in SEEDED.values() for fact in facts}
    expected.add(("per_node", "ranks", "ranks of the processes", (0, 1)))
    assert differences(again.json["compared"]) == expected
    report = (proof / "README.md").read_text()
    for name in {name for _, _, name, _ in expected}:
        assert f"| `{name}` |" in report
    assert "no records" in report
    for file in proof.iterdir():
        for private in (run.name, SUBSCRIPTION, str(project), "127.0.0.2", "contoso", gethostname()):
            assert private not in file.read_text(), file
