"""TensorFlow's side of the runtime: the cluster of TF_CONFIG, how its tasks meet, and how they end."""

import json
import signal
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract import report
from allranks.errors import InputError
from allranks.runtime.lifecycle import Watch
from allranks.runtime.tensorflow.cluster import Cluster, Sight, find_lost, read, wait_for_tasks, wait_until_gone
from tensorflow_tasks import cluster, finish, needs_tensorflow, start

SCRIPT = Path(__file__).parent / "scripts/tensorflow_tasks.py"

AZURE = {"AZUREML_NODE_COUNT": "3", "AZUREML_CR_NODE_RANK": "0"}


def config(role: str, index: int, **tasks: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": tasks, "task": {"type": role, "index": index}})}


@pytest.mark.parametrize(
    ("role", "index", "expected"),
    [("worker", 0, ("chief", 0)), ("worker", 2, ("worker", 1)), ("ps", 0, ("ps", 0))],
)
def test_with_parameter_servers_worker_0_becomes_the_chief(role: str, index: int, expected: tuple[str, int]) -> None:
    found = read(config(role, index, worker=["a:1", "b:1", "c:1"], ps=["a:2"]))
    assert found is not None
    assert dict(found.tasks) == {"chief": ("a:1",), "worker": ("b:1", "c:1"), "ps": ("a:2",)}
    assert (found.role, found.index) == expected
    assert found.trainers == (("worker", 0), ("worker", 1))
    assert found.is_chief == (role == "worker" and index == 0)


def test_a_chief_that_is_there_stays() -> None:
    found = read(config("worker", 0, chief=["a:1"], worker=["b:1"], ps=["c:1"]))
    assert found == Cluster({"chief": ("a:1",), "worker": ("b:1",), "ps": ("c:1",)}, "worker", 0)
    workers = read(config("worker", 0, chief=["a:1"], worker=["b:1"]))
    assert workers is not None
    assert workers.trainers == (("chief", 0), ("worker", 0))
    assert not workers.is_chief


def test_tasks_that_share_an_instance_are_counted() -> None:
    found = read(config("worker", 1, worker=["a:1", "b:1"], ps=["b:2"]))
    assert found is not None
    assert found.local_count == 2


@pytest.mark.parametrize("environ", [{}, config("worker", 0, worker=["a:1"]), config("chief", 0, chief=["a:1"])])
def test_one_task_trains_alone(environ: Mapping[str, str]) -> None:
    assert read(environ) is None


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (config("worker", 0, worker=["a:1"], ps=["a:2"]), "1 worker with 1 parameter server"),
        (config("ps", 0, ps=["a:2"]), "neither a chief nor a worker"),
        (config("chief", 0, chief=["a:1", "b:1"], worker=["c:1"]), "2 chiefs"),
        (config("worker", 0, worker=["a:1"]) | AZURE, "1 of the job's 3 instances"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG"),
        ({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, "no TF_CONFIG"),
    ],
)
def test_a_launch_that_cannot_be_is_refused(environ: Mapping[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(environ)


def test_tasks_meet() -> None:
    chief = Cluster({role: tuple(tasks) for role, tasks in cluster(chief=1, worker=2, ps=1).items()}, "chief", 0)
    others = [replace(chief, role=name.split()[0], index=int(name.split()[1])) for name in chief.others]
    threads = [threading.Thread(target=wait_for_tasks, args=(other, 30), daemon=True) for other in others]
    for thread in threads:
        thread.start()
    for connection in wait_for_tasks(chief, 30).values():
        connection.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_who_does_not_come_is_named() -> None:
    chief = Cluster({"worker": tuple(cluster(worker=3)["worker"])}, "worker", 0)
    error: list[ConnectionError] = []

    def worker_1() -> None:
        try:
            wait_for_tasks(replace(chief, index=1), 1)
        except ConnectionError as raised:
            error.append(raised)

    thread = threading.Thread(target=worker_1, daemon=True)
    thread.start()
    with pytest.raises(ConnectionError, match=rf"^worker 2 at {chief.others['worker 2']} did not connect within 0.5 s"):
        wait_for_tasks(chief, 0.5)
    thread.join(30)
    assert f"the chief at {chief.chief_endpoint} did not answer" in str(error[0])


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConnectionError, match=f"the chief cannot listen at port {port}: Address already in use"):
            wait_for_tasks(Cluster({"worker": (f"127.0.0.1:{port}", "127.0.0.1:1")}, "worker", 0), 5)


def test_a_task_that_is_gone_is_missed_once_and_only_until_the_end() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    tasks = {"worker 1": f"127.0.0.1:{listener.getsockname()[1]}"}
    lost: list[ConnectionError] = []
    told = threading.Event()
    watched, never_lost = ([Sight(name, endpoint) for name, endpoint in tasks.items()] for _ in range(2))
    Watch(lambda: find_lost(watched, 60), lambda error: (lost.append(error), told.set()))
    stopped = Watch(lambda: find_lost(never_lost, 60), lost.append)
    listener.accept()[0].close()
    listener.accept()[0].close()
    stopped.stop()
    listener.close()
    assert told.wait(30)
    assert [str(error) for error in lost] == [f"worker 1 at {tasks['worker 1']} is gone; its own log says why"]


def test_a_task_that_never_was_is_not_waited_for() -> None:
    (endpoint,) = cluster(chief=1)["chief"]
    with pytest.raises(ConnectionError, match="did not appear within 0 s"):
        wait_until_gone("the chief", endpoint, 0)


@needs_tensorflow
@pytest.mark.slow
def test_a_chief_that_fails_takes_its_workers_with_it(tmp_path: Path) -> None:
    tasks = cluster(chief=1, worker=1)
    names = ("chief-0", "worker-0")
    ended = finish(tmp_path, {name: start(tmp_path, name, tasks, SCRIPT, "chief-0", "fail") for name in names})
    assert {name: task.code for name, task in ended.items()} == dict.fromkeys(names, 1), ended
    (cause,), (consequence,) = (ended[name].of(report.Failure) for name in names)
    assert cause.type == "ValueError"
    assert cause.time < consequence.time


@pytest.mark.recipe
@needs_tensorflow
def test_a_server_notifies_the_chief_of_an_eviction_and_ends_with_it(tmp_path: Path) -> None:
    """A parameter server. The chief and the worker are threads of this process."""
    tasks = cluster(chief=1, worker=1, ps=1)
    process = start(tmp_path, "ps-0", tasks, SCRIPT)
    chief = read(config("chief", 0, **tasks))
    assert chief is not None
    worker = threading.Thread(target=wait_for_tasks, args=(replace(chief, role="worker"), 120), daemon=True)
    worker.start()
    connection = wait_for_tasks(chief, 120)["ps 0"]
    wait_until_listening(chief.others["ps 0"])
    process.send_signal(signal.SIGTERM)
    assert connection.recv(100) == b"evicted\n"
    connection.close()
    ended = finish(tmp_path, {"ps-0": process})["ps-0"]
    assert (ended.code, ended.of(report.Failure)) == (0, []), ended
    worker.join(30)


def wait_until_listening(endpoint: str) -> None:
    sight, deadline = Sight("", endpoint), time.monotonic() + 100
    while not sight.appeared:
        assert time.monotonic() < deadline
        sight.missing(100)
        time.sleep(0.05)
