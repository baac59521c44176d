"""The verdict by the logs of the ranks alone, as each stack writes them."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.history.formatting import cause
from allranks.history.records import RankRecord, Status, Verdict
from allranks.verdict import judge
from allranks.verdict.folder import of_waiting, verdicts

TRACEBACK = """\
Traceback (most recent call last):
  File "/azureml/code/train.py", line {1}, in <module>
    main()
  File "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 81, in all_reduce
    return func(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^^^^
{0}
"""
PEER = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:3042"
TIMEOUT = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv"
)
KEY = "wait timeout after 5000ms, keys: /default_pg/0//cpu//0/3"
MESH = "RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.h:311] Connect timeout [none]"
MISMATCH = "they called it with different shapes, types or in another order, or their instances are not connected"
LOST = "lost the connection: they were killed, or their instance was evicted"
EXIT = "is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail:"
NODE = "died because its node has died. Node Id: 117cb9\n\tthe actor's node was terminated unexpectedly:"
UNHEARD = "got no heartbeats: killed, evicted, stopped or cut off"
SILENT = "its log ends without an exception, and ranks 1, 2 and 3 waited for it, or for each other"
BAD = "ValueError: bad batch in shard 7"
DUPLICATE = "torch.distributed.DistBackendError: NCCL invalid usage: Duplicate GPU detected : rank 1 and rank 0"


def raised(text: str, line: int = 10) -> str:
    return TRACEBACK.format(text, line)


def nccl(error: str) -> str:
    return f"torch.distributed.DistBackendError: NCCL error in: /torch/NCCLUtils.cpp:93, {error}, NCCL version 2.28.9"


def died(how: str) -> str:
    """Return what Ray says of an actor that has died."""
    text = raised("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.")
    return f"{text}\tclass_name: Worker\n\tpid: 94\n\tip: 10.0.0.5\nThe actor {how}\n"


def waited(collective: str, line: int) -> str:
    return raised(TIMEOUT, line).replace("in all_reduce", f"in {collective}")


def in_tensorflow(name: str, text: str) -> str:
    header = raised(f"tensorflow.python.framework.errors_impl.{name}: Graph execution error:")
    header = header.replace("torch/distributed/distributed_c10d.py", "tensorflow/python/eager/execute.py")
    return f"{header}\nCollective ops is aborted by: {text}\n"


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


CASES = {
    "gloo": ([raised(PEER), raised(PEER), raised(BAD), raised(PEER)], f"rank 2: {BAD} (train.py:10)"),
    "time-out": ([raised(TIMEOUT), raised(BAD, 7)], f"rank 1: {BAD} (train.py:7)"),
    "NCCL's watchdog": (
        [
            "[rank0]:[E1126 05:00:00 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout\n",
            prefixed("[rank1]: ", raised("IndexError: list index out of range")),
        ],
        "rank 1: IndexError: list index out of range (train.py:10)",
    ),
    "torch's own rank": (["", prefixed("[rank5]: ", raised(BAD))], f"rank 5: {BAD} (train.py:10)"),
    "mpirun --tag-output": (
        [prefixed("[1,0]<stderr>:", raised(PEER)) + prefixed("[1,3]<stderr>:", raised(BAD))],
        f"rank 3: {BAD} (train.py:10)",
    ),
    "Horovod": (
        [
            raised("horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an"),
            raised(BAD),
        ],
        f"rank 1: {BAD} (train.py:10)",
    ),
    "TensorFlow's graph": (
        [
            raised(PEER),
            raised("tensorflow.InternalError: Graph execution error:")
            + '\nDetected at node X defined at (most recent call last):\n  File "train.py", line 8, in f\n\n'
            + "Collective ops is aborted by: Shape mismatch in the collective instance 105.\nmore\n",
        ],
        "rank 1: tensorflow.InternalError: Shape mismatch in the collective instance 105. (train.py:10)",
    ),
    "NCCL": (
        [
            raised(nccl("remote process exited or there was a network error"))
            + "ncclRemoteError: A call failed possibly due to a network error.\nLast error:\n\nstep 8\n",
            raised(nccl("invalid usage (run with NCCL_DEBUG=WARN for details)"))
            + "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
            + "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60\n",
        ],
        f"rank 1: {DUPLICATE} … (train.py:10)",
    ),
    "a worker of a data loader": (
        [
            raised("ValueError: Caught ValueError in DataLoader worker process 1.")
            + "Original "
            + raised("ValueError: cannot decode 7.jpg", 31)
        ],
        "rank 0: ValueError: cannot decode 7.jpg (train.py:31)",
    ),
    "torch.multiprocessing.spawn": (
        [
            raised("torch.multiprocessing.spawn.ProcessRaisedException: ")
            + "\n-- Process 1 terminated with the following error:\n"
            + raised(BAD, 4)
        ],
        f"rank 0: {BAD} (train.py:4)",
    ),
    "Ray": (
        [
            prefixed("(train pid=12, ip=10.0.0.5) ", "step 1")
            + TRACEBACK.format("ray.exceptions.RayTaskError(ValueError): ray::train() (pid=12, ip=10.0.0.5)", 3)
            + "           ^^^^^^^^^^^\n"
            + '  File "/azureml/code/model.py", line 8, in train\n    raise ValueError\n'
            + f"{BAD}\n"
        ],
        f"rank 0: {BAD} (model.py:8)",
    ),
    "Ray's actor that was killed": (
        [
            died(f"{EXIT} Worker is killed. Some common causes include: (1) the process was killed by the OOM killer")
            + "\n\x1b[36m(Worker pid=94, ip=10.0.0.5)\x1b[0m step 2\n",
            "Ray runtime started.\n",
        ],
        "rank 0: ray.exceptions.ActorDiedError: its worker process has died. Worker is killed. (train.py:10)",
    ),
    "Ray's instance that was evicted": (
        [died(f"{EXIT} Worker exits unexpectedly. The process receives a SIGTERM."), "Ray runtime started.\n"],
        "rank 1: its log ends without an exception, and rank 0 lost the connection: killed, or evicted",
    ),
    "Ray's instance that was cut off": (
        [died(f"{NODE} health check failed due to missing too many heartbeats"), "Ray runtime started.\n"],
        f"rank 1: its log ends without an exception, and rank 0 {UNHEARD}",
    ),
    "TensorFlow's worker without heartbeats": (
        [raised("errors_impl.UnavailableError: The following tasks are unhealthy (stopped sending heartbeats):"), ""],
        f"rank 1: its log ends without an exception, and rank 0 {UNHEARD}",
    ),
    "while a consequence was handled": (
        [
            raised(BAD)
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + raised(PEER, 12),
            raised(PEER),
        ],
        f"rank 0: {BAD} (train.py:10)",
    ),
    "a thread of a rank": (
        [raised(BAD) + "Exception in thread Thread-1:\n" + raised(PEER)],
        f"rank 0: {BAD} (train.py:10)",
    ),
    "a handled exception": ([raised("OSError: retried") + "step\n" * 50, raised(BAD)], f"rank 1: {BAD} (train.py:10)"),
    "a syntax error": (
        ['  File "/azureml/code/train.py", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n'],
        "rank 0: SyntaxError: invalid syntax (train.py:3)",
    ),
    "mpirun's message on a signal": (
        [
            "mpirun noticed that process rank 2 with PID 0 on node node-1 exited on signal 9 (Killed).\n",
            raised(PEER),
            "",
            "",
        ],
        "rank 2 ended by SIGKILL",
    ),
    "mpirun's message on an exit code": (
        ["The first process to do so was:\n\n  Process name: [[51234,1],3]\n  Exit code:    3\n", "", "", ""],
        "rank 3 ended with exit code 3",
    ),
    "an abort": (
        [raised(PEER), "terminate called\n  what():  op.preamble.length <= op.nbytes. 8 vs 4\n"],
        "rank 1: what():  op.preamble.length <= op.nbytes. 8 vs 4",
    ),
    "a log without an exception": (
        [raised(PEER), raised(PEER), "", raised(PEER)],
        "rank 2: its log ends without an exception, and ranks 0, 1 and 3 lost the connection: killed, or evicted",
    ),
    "the log of one rank": ([raised(TIMEOUT)], f"rank 0: {TIMEOUT.replace('gloo/gloo/transport', '…')} (train.py:10)"),
    "waiting in another collective": (
        [waited("all_reduce", 39), raised(PEER, 39), waited("broadcast", 37), raised(PEER, 39)],
        "rank 2: it waits in broadcast, and ranks 0, 1 and 3 in all_reduce (train.py:39) (train.py:37)",
    ),
    "waiting for more ranks": (
        [raised(MESH), raised(f"torch.distributed.DistStoreError: {KEY}"), raised(MESH)],
        "rank 1: it waits in init_process_group for a rank 3, and others do not: see its world size (train.py:10)",
    ),
}


@pytest.mark.parametrize(("logs", "expected"), CASES.values(), ids=CASES)
def test_the_cause_among_the_logs_of_all_ranks(tmp_path: Path, logs: list[str], expected: str) -> None:
    folder = tmp_path / "train" / "user_logs"
    folder.mkdir(parents=True)
    for rank, text in enumerate(logs):
        (folder / f"std_log_process_{rank}.txt").write_text(f"epoch 1\n{text}")
    (verdict,) = verdicts(tmp_path)
    assert verdict.step == "train"
    assert cause(verdict) == expected
    assert len(verdict.consequences) <= 1


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        (
            {"std_log_process_0.txt": raised(PEER), "std_log_process_1.txt": raised(TIMEOUT)},
            f"every rank waits in all_reduce (train.py:10), and no message arrives: {MISMATCH}",
        ),
        (
            {
                "mpi_log.txt": "ORTE has lost communication with a remote daemon.\n\n"
                "  HNP daemon   : [[51234,0],0] on node node-0\n  Remote daemon: [[51234,0],1] on node node-1\n",
                "std_log_process_0.txt": "",
            },
            "instance 1 (node-1) was evicted or lost: mpirun lost its daemon there",
        ),
        (
            dict(zip((f"std_log_process_{rank}.txt" for rank in range(4)), [raised(PEER)] * 2 + [""] * 2, strict=True)),
            f"its log ends without an exception, like that of rank 3, and ranks 0 and 1 {LOST}",
        ),
        (
            {"mpi_log.txt": "", "std_log_process_0.txt": raised(PEER), "std_log_process_1.txt": "epoch 1\n"},
            "mpirun was killed, or its instance was evicted: its log is empty, and ranks lost the connection",
        ),
        (
            {
                "mpi_log.txt": "The first process to do so was:\n\n  Process name: [[51234,1],1]\n  Exit code:    1\n",
                "std_log_process_0.txt": waited("all_reduce", 39),
                "std_log_process_1.txt": waited("broadcast", 37),
                "std_log_process_2.txt": waited("all_reduce", 39),
            },
            "it waits in broadcast, and ranks 0 and 2 in all_reduce (train.py:39)",
        ),
        (
            {
                f"std_log_node_{worker}_worker.txt": f"I0000 Started server with target: {target}\n"
                for worker, target in enumerate(("grpc://198.51.100.7:2222", "grpc://10.0.0.5:2222"))
            },
            "every worker waits to be connected with grpc://198.51.100.7:2222, the first address of TF_CONFIG",
        ),
        (
            {
                "std_log_node_0_worker.txt": in_tensorflow("UnavailableError", "The following tasks are unhealthy"),
                "std_log_node_1_worker.txt": in_tensorflow("DeadlineExceededError", "Deadline Exceeded"),
            },
            f"every rank waits in a function of TensorFlow (train.py:10), and no message arrives: {MISMATCH}",
        ),
        (
            {
                "std_log_process_0.txt": "",
                "std_log_process_1.txt": waited("all_reduce", 31),
                "std_log_process_2.txt": waited("all_reduce", 39),
                "std_log_process_3.txt": raised(PEER, 31),
            },
            f"{SILENT}: rank 2 (train.py:39): it waits in all_reduce, and ranks 1 and 3 in all_reduce (train.py:31)",
        ),
    ],
    ids=[
        "all ranks wait",
        "mpirun lost an instance",
        "an instance is silent",
        "mpirun was killed",
        "mpirun's exit code",
        "no worker of TensorFlow is connected",
        "workers of TensorFlow have lost each other",
        "a rank is silent, and others wait at different lines",
    ],
)
def test_the_reason_where_no_rank_shows_it(tmp_path: Path, logs: dict[str, str], expected: str) -> None:
    for name, text in logs.items():
        (tmp_path / name).write_text(text)
    (verdict,) = verdicts(tmp_path)
    assert verdict.reason == expected


@pytest.mark.parametrize(
    ("signal", "exit_code", "log", "kills", "reason", "code"),
    [
        ("SIGKILL", None, "", 0, "ended by SIGKILL", ""),
        (None, 137, "train.sh: line 3:    71 Killed    python train.py\n", 0, "ended by SIGKILL", ""),
        (None, 137, "no more shards\n", 0, "exit code 137", ""),
        ("SIGKILL", None, raised(PEER), 1, "killed by the kernel: out of memory, after 1.5 GB in use", "out-of-memory"),
        (None, 135, "bash: line 1:    71 Bus error    python train.py\n", 0, "ended by SIGBUS", "shared-memory"),
        ("SIGBUS", None, "", 0, "ended by SIGBUS", "shared-memory"),
        ("SIGTERM", None, "", 0, "ended by SIGTERM", "lost-rank"),
        (None, 3, "cannot read\n", 0, "exit code 3", ""),
        (
            "SIGABRT",
            None,
            "what(): op.preamble.length <= op.nbytes. 8 vs 4\n",
            0,
            "what(): op.preamble.length <= op.nbytes. 8 vs 4",
            "collective-mismatch",
        ),
        (None, 1, "E: [Errno 98] Address already in use\n", 0, "E: [Errno 98] Address already in use", "port-in-use"),
    ],
)
def test_an_end_without_an_exception(
    tmp_path: Path, signal: str | None, exit_code: int | None, log: str, kills: int, reason: str, code: str
) -> None:
    verdict = judged(tmp_path, [(log, exit_code, signal)], memory_kills=kills)
    assert (verdict.reason, verdict.code) == (reason, code)


def test_a_killed_rank_and_not_those_that_lost_it(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [(raised(PEER), 1, None), (raised(PEER), 1, None), ("step 3\n", None, "SIGKILL")])
    assert (verdict.rank, verdict.reason) == (2, "ended by SIGKILL")
    assert verdict.consequences == (f"ranks 0 and 1: {PEER.replace('gloo/gloo/transport', '…')}",)


def test_a_mismatch_and_not_the_crash_that_follows_from_it(tmp_path: Path) -> None:
    text = "mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated"
    verdict = judged(tmp_path, [("", None, "SIGSEGV"), (raised(text), None, "SIGTERM"), ("", None, "SIGTERM")])
    assert (verdict.rank, verdict.reason, verdict.code) == (1, text, "collective-mismatch")


def judged(folder: Path, ends: list[tuple[str, int | None, str | None]], *, memory_kills: int = 0) -> Verdict:
    ranks = []
    for number, (text, code, signal) in enumerate(ends):
        log = folder / f"{number}.txt"
        log.write_text(text)
        ranks.append(
            RankRecord(number, 0, number, "", Status.FAILED, 0.0, number, code, signal, str(log), None, 1_500_000_000)
        )
    verdict = judge.of_ranks("train", ranks, {}, memory_kills=memory_kills)
    assert verdict is not None
    return judge.with_advice(verdict)


@pytest.mark.parametrize(("last", "reason"), [("", TIMEOUT), (raised(TIMEOUT), "every rank waits in all_reduce")])
def test_every_rank_waits_only_if_all_have_given_up(tmp_path: Path, last: str, reason: str) -> None:
    ranks = [RankRecord(number, 0, number, "", log=str(tmp_path / f"{number}.txt")) for number in range(3)]
    for rank, text in zip(ranks, (raised(TIMEOUT), raised(TIMEOUT), last), strict=True):
        Path(rank.log).write_text(text)
    assert of_waiting(Verdict("train", TIMEOUT, rank=0), ranks).reason.startswith(reason)


def test_only_the_last_retry_counts(tmp_path: Path) -> None:
    for folder, text in (("user_logs", BAD), ("user_logs/retry_001", "KeyError: 'loss'")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "std_log.txt").write_text(raised(text))
    (verdict,) = verdicts(tmp_path)
    assert verdict.reason == "KeyError: 'loss'"


def test_old_names_of_logs_of_several_jobs_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    for job, text in (("prepare", "ok\n"), ("train", raised(BAD)), ("evaluate", raised("KeyError: 'x'"))):
        (tmp_path / job / "azureml-logs").mkdir(parents=True)
        (tmp_path / job / "azureml-logs" / "70_driver_log_0.txt").write_bytes(b"\xff\x00\x1b[31m\n" + text.encode())
    assert {verdict.step: verdict.reason for verdict in verdicts(tmp_path)} == {
        "train": BAD,
        "evaluate": "KeyError: 'x'",
    }


def test_a_folder_without_logs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(InputError, match="no logs of ranks"):
        verdicts(tmp_path)
