"""What a process finds on an emulated instance."""

import json
import sys
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.contract.world import detect
from allranks.history.records import RunRecord, Status
from allranks.plan.graph import Step
from allranks.plan.ports import Input, NodeOutput, Output
from allranks.plan.ports import Path as DataPath

LOOK = """
import json, os, socket, sys
place = dict(os.environ)
shm = os.statvfs("/dev/shm")
place.update(hostname=socket.gethostname(), pid=os.getpid(), shm=shm.f_blocks * shm.f_frsize)
place["interfaces"] = [name for _, name in socket.if_nameindex()]
json.dump(place, open(os.path.join(os.environ["AZURE_ML_OUTPUT_seen"], os.environ.get("RANK", "0")), "w"))
"""


def _look(run_steps, **step: object) -> tuple[RunRecord, list[dict]]:
    step.setdefault("distribution", PyTorch(2))
    step.setdefault("instance_count", 2)
    kind = step.pop("kind")
    record = run_steps(
        Step("look", f"{sys.executable} - <<'END'\n{LOOK}END", outputs=(Output("seen", "uri_folder"),), **step),  # type: ignore[arg-type]
        instances=kind,
    )
    assert record.status is Status.COMPLETED, record.verdict
    folder = Path(record.step("look").outputs[0].path)
    return record, [json.loads(file.read_text()) for file in sorted(folder.iterdir())]


def test_each_rank_reads_its_own_place(kind: str, run_steps) -> None:
    record, seen = _look(run_steps, kind=kind)
    places = [detect(environ) for environ in map(_texts, seen)]
    assert [(place.rank, place.local_rank, place.instance_rank) for place in places] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 0, 1),
        (3, 1, 1),
    ]
    assert {(place.world_size, place.local_world_size, place.instance_count) for place in places} == {(4, 2, 2)}
    assert len({(place.master_addr, place.master_port) for place in places}) == 1
    assert [rank.hostname for rank in record.step("look").ranks] == [
        record.step("look").ranks[rank].hostname for rank in range(4)
    ]


def _texts(environ: dict) -> dict[str, str]:
    return {name: value for name, value in environ.items() if isinstance(value, str)}


def test_a_rack_instance_is_a_machine_of_its_own(rack_works: bool, run_steps) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    _, seen = _look(run_steps, kind="rack", shm_size=32 << 20)
    assert [place["hostname"] for place in seen] == ["node-0", "node-0", "node-1", "node-1"]
    # The way out has a device without an address.
    assert all({*place["interfaces"]} - {"out0"} == {"eth0", "lo"} for place in seen)
    assert all(place["shm"] == 32 << 20 for place in seen)
    assert all(place["pid"] < 20 for place in seen)


def test_rack_instances_reach_each_other_by_name(rack_works: bool, run_steps) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    talk = (
        "import os, socket\n"
        "if os.environ['RANK'] == '0':\n"
        "    server = socket.create_server(('', 6105)); other, _ = server.accept(); print(other.recv(9).decode())\n"
        "else:\n"
        "    while True:\n"
        "        try: link = socket.create_connection(('node-0', int(os.environ['MASTER_PORT'])), 20); break\n"
        "        except ConnectionRefusedError: continue\n"
        "    link.sendall(b'from far')\n"
    )
    step = Step("talk", f'{sys.executable} -c "{talk}"', distribution=PyTorch(1), instance_count=2, timeout=60)
    # Two at once: the same addresses and the same port, in racks that never meet, or on machines of their own.
    record = run_steps(
        step, Step("again", step.command, distribution=PyTorch(1), instance_count=2, timeout=60), instances="rack"
    )
    assert record.status is Status.COMPLETED, record.verdict
    assert Path(record.step("talk").ranks[0].log).read_text() == "from far\n"


def test_nothing_of_the_users_shell_reaches_a_rank(kind: str, run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "9", "OMPI_COMM_WORLD_RANK": "8", "MASTER_ADDR": "stray", "SECRET": "hush"}.items():
        monkeypatch.setenv(name, value)
    _, seen = _look(run_steps, kind=kind, distribution=PyTorch(1), instance_count=1)
    assert seen[0]["RANK"] == "0"
    assert seen[0]["MASTER_ADDR"] != "stray"
    assert "SECRET" not in seen[0]
    assert "OMPI_COMM_WORLD_RANK" not in seen[0]


def test_a_steps_own_variables_win(kind: str, run_steps) -> None:
    _, seen = _look(run_steps, kind=kind, environment_variables={"NCCL_DEBUG": "INFO", "MASTER_PORT": "7000"})
    assert {(place["NCCL_DEBUG"], place["MASTER_PORT"]) for place in seen} == {("INFO", "7000")}


def test_an_instance_has_a_temporary_folder_of_its_own_which_is_gone_afterwards(kind: str, run_steps) -> None:
    command = "mktemp; echo ${TMPDIR:-/tmp}"
    record = run_steps(Step("look", command, distribution=PyTorch(2), instance_count=2), instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    lines = [Path(rank.log).read_text().split() for rank in record.step("look").ranks]
    assert all(Path(file).is_relative_to(folder) for file, folder in lines)
    assert not any(Path(file).exists() for file, _ in lines)
    if kind == "loopback":
        assert lines[0][1] == lines[1][1] != lines[2][1] == lines[3][1]


MODES = ["ro_mount", "rw_mount", "mount", "download", "direct", "eval_mount", "eval_download"]


TYPES = ["uri_file", "uri_folder", "mltable", "custom_model"]


def test_inputs_of_every_type_and_mode(kind: str, run_steps, tmp_path: Path) -> None:
    """None is a link: programs that guard their folders refuse links that lead out of them, as MLflow does."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "part.csv").write_text("a,b\n")
    steps = [
        Step(
            f"{mode}-{type_}",
            "cat ${{inputs.data}}" + ("" if type_ == "uri_file" else "/part.csv") + " && [ ! -L ${{inputs.data}} ]",
            inputs=(Input("data", type_, DataPath(str(data / "part.csv" if type_ == "uri_file" else data)), mode),),
        )
        for mode in MODES
        for type_ in TYPES
    ]
    record = run_steps(*steps, instances=kind)
    assert [step.name for step in record.steps if step.status is not Status.COMPLETED] == []
    assert {Path(step.ranks[0].log).read_text() for step in record.steps} == {"a,b\n"}
    assert (data / "part.csv").read_text() == "a,b\n"


def test_outputs_reach_the_next_step(kind: str, run_steps) -> None:
    steps = []
    for mode in ("rw_mount", "mount", "upload"):
        write = Step(
            f"write-{mode}",
            "echo $RANK > ${{outputs.out}}/$RANK; echo 7 > ${{outputs.count}}",
            outputs=(Output("out", "uri_folder", mode), Output("count", "integer")),
            distribution=PyTorch(1),
            instance_count=2,
        )
        inputs = (
            Input("in", "uri_folder", NodeOutput(write.name, "out"), "ro_mount"),
            Input("n", "integer", NodeOutput(write.name, "count")),
        )
        steps += [write, Step(f"read-{mode}", "ls ${{inputs.in}} && echo n=${{inputs.n}}", inputs=inputs)]
    record = run_steps(*steps, instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    read = [Path(step.ranks[0].log).read_text().split() for step in record.steps if step.name.startswith("read")]
    assert read == [["0", "1", "n=7"]] * 3


def test_an_output_file_that_was_not_written_is_a_failure(run_steps) -> None:
    record = run_steps(Step("forget", "true", outputs=(Output("count", "integer"),)))
    assert record.status is Status.FAILED
    assert "output count was not written" in record.verdict.reason


def test_what_is_written_to_outputs_is_an_artifact_of_the_run(kind: str, run_steps) -> None:
    record = run_steps(Step("write", "mkdir outputs/deep; echo 1 > outputs/deep/x; echo 2 > lost"), instances=kind)
    step = record.step("write")
    assert step.artifacts == ["outputs/deep/x"]
    assert not list(Path(step.folder).rglob("lost"))
