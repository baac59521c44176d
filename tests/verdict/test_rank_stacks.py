"""Which rank of a step that hangs is to blame, by the stacks of all."""

from dataclasses import replace
from pathlib import Path

import pytest

from allranks.history.records import RankRecord, Status, Verdict
from allranks.verdict.collectives import Call, Recording
from allranks.verdict.hangs import of_hang, of_time_out
from allranks.verdict.rank_stack import Frame, Stack
from run_records import make_ranks

TORCH = "/venv/lib/python3.11/site-packages/torch"
EAGER = "/venv/lib/python3.11/site-packages/tensorflow/python/eager"
SCRIPT = """\
comm.barrier()
time.sleep(1000)
dist.all_reduce(loss)
dist.barrier()
loss.backward()
"""


RAY = {"ray.get": ("get", 3), "task": ("Worker.main_loop", 2)}


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text(SCRIPT)
    return str(tmp_path / "train.py")


def _stack(rank: int, what: str, script: str) -> Stack:
    """Return the stack of a rank that is at a line of the script, and in what that line calls."""
    distributed = f"{TORCH}/distributed/distributed_c10d.py"
    wrapper = Frame("wrapper", f"{TORCH}/distributed/c10d_logger.py", 83)
    calls = {
        "mpi": (1, ()),
        "sleep": (2, ()),
        "all_reduce": (3, (Frame("all_reduce", distributed, 3252), wrapper)),
        "barrier": (4, (Frame("barrier", distributed, 5000), wrapper)),
        "init_process_group": (
            4,
            (
                Frame("_rendezvous", f"{TORCH}/distributed/rendezvous.py", 9),
                Frame("init_process_group", distributed, 1),
            ),
        ),
        "backward": (5, (Frame("_engine_run_backward", f"{TORCH}/autograd/graph.py", 800),)),
        "build": (3, (Frame("wait", f"{TORCH}/utils/file_baton.py", 50), Frame("all_reduce", distributed, 1))),
        "ddp": (5, (Frame("_sync", f"{TORCH}/nn/parallel/distributed.py", 1),)),
        "keras": (
            5,
            (Frame("quick_execute", f"{EAGER}/execute.py", 53), Frame("call_function", f"{EAGER}/context.py", 1)),
        ),
    }
    if what in RAY:
        name, line = RAY[what]
        frames = (
            Frame("<module>", script, line),
            Frame(name, "/venv/lib/python3.11/site-packages/ray/_private/worker.py", 1),
        )
        return Stack(rank, frames if what == "task" else frames[::-1], is_idle=True)
    if what == "exiting":
        return Stack(rank, ())
    if what == "shell":
        return Stack(rank, (), command="its shell runs `until test -e marker; do sleep 1; done`")
    if what == "stopped":
        return replace(_stack(rank, "all_reduce", script), is_stopped=True)
    line, frames = calls[what]
    return Stack(rank, (*frames, Frame("<module>", script, line)))


def _running(count: int) -> list[RankRecord]:
    ranks = make_ranks(1, count)
    for rank in ranks:
        rank.status = Status.RUNNING
    return ranks


@pytest.mark.parametrize(
    ("places", "blamed", "reason"),
    [
        (
            ("all_reduce", "sleep", "all_reduce"),
            1,
            "`time.sleep(1000)`, and ranks 0 and 2 wait for it in all_reduce",
        ),
        (("mpi", "mpi", "sleep"), 2, "at `time.sleep(1000)`, and ranks 0 and 1 wait for it in barrier"),
        (("backward", "barrier", "backward", "sleep"), 3, "and rank 1 wait"),
        (("backward", "barrier", "barrier"), 0, "at `loss.backward()`, and ranks 1 and 2 in barrier (train.py:4)"),
        (("barrier", "all_reduce", "all_reduce"), 0, "waits in barrier, and ranks 1 and 2 in all_reduce (train.py:3)"),
        (("backward", "sleep", "backward"), 1, "`time.sleep(1000)`, and ranks 0 and 2 wait for it in backward"),
        (("all_reduce", "stopped"), 1, "stopped by a signal at `dist.all_reduce(loss)`, and rank 0 wait"),
        (("init_process_group", "exiting"), 1, "it exits, and rank 0 wait"),
        (
            ("init_process_group", "shell", "init_process_group"),
            1,
            "started Python; its shell runs `until test -e marker; do sleep 1; done`, and ranks 0 and 2 wait for it",
        ),
        (
            ("build", "build"),
            None,
            "every rank waits in the build of a C++ extension, whose lock another process holds",
        ),
        (("ddp", "sleep"), 1, "in DistributedDataParallel"),
        (("all_reduce", "all_reduce"), None, "every rank waits in all_reduce (train.py:3)"),
        (("ray.get", "task"), 1, "its Ray worker is at `time.sleep(1000)`, and rank 0 waits for it in ray.get for"),
        (("ray.get",), None, "rank 0 waits in ray.get (train.py:3) for 300 s, and no task of Ray runs"),
    ],
)
def test_the_rank_that_is_not_there(places: tuple[str, ...], blamed: int | None, reason: str, script: str) -> None:
    stacks = [_stack(rank, place, script) for rank, place in enumerate(places)]
    verdict = of_hang("train", _running(len(places)), stacks, 300)
    assert verdict is not None
    assert verdict.rank == blamed
    assert reason in verdict.reason
    assert "300 s" in verdict.reason
    assert ("a longer --stall" in verdict.advice) is (blamed is not None)


@pytest.mark.parametrize(
    "places", [("sleep", "sleep"), ("backward",), ("exiting",), (), ("keras",), ("shell", "shell")]
)
def test_no_hang_without_a_rank_that_waits(places: tuple[str, ...], script: str) -> None:
    stacks = [_stack(rank, place, script) for rank, place in enumerate(places)]
    assert of_hang("train", make_ranks(1, 2), stacks) is None


USER = Frame("main", "/code/train.py", 3)
MODULE = Frame("_call_impl", f"{TORCH}/nn/modules/module.py", 1500)
SAVE = Frame("save", f"{TORCH}/distributed/checkpoint/state_dict_saver.py", 170)
FSDP = f"{TORCH}/distributed/fsdp/_fully_shard/_fsdp_state.py"
CONTEXT = f"{EAGER}/context.py"
HANDLES = "/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/partition_parameters.py"
DDP = Frame("forward", f"{TORCH}/nn/parallel/distributed.py", 1600)


@pytest.mark.parametrize(
    ("frames", "collective"),
    [
        ((DDP, MODULE, USER), "DistributedDataParallel"),
        ((Frame("linear", f"{TORCH}/nn/functional.py", 1), MODULE, DDP, MODULE, USER), ""),
        ((Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 1), MODULE, DDP, MODULE, USER), "all_reduce"),
        ((USER, MODULE, DDP, MODULE), ""),
        ((USER, Frame("wrapper", f"{TORCH}/distributed/elastic/multiprocessing/errors/__init__.py", 9)), ""),
        ((Frame("_write_item", f"{TORCH}/distributed/checkpoint/filesystem.py", 1), SAVE, USER), ""),
        ((Frame("gather_object", f"{TORCH}/distributed/distributed_c10d.py", 1), SAVE, USER), "gather_object"),
        ((Frame("Group.unshard", FSDP, 1), Frame("State._pre_forward", FSDP, 2)), "Group.unshard"),
        (
            (
                Frame("wrapped_fn", "/venv/lib/python3.11/site-packages/deepspeed/utils/nvtx.py", 9),
                Frame("wait", HANDLES, 1),
                MODULE,
            ),
            "ZeRO's all_gather",
        ),
        ((Frame("Context.ensure_initialized", CONTEXT, 7),), "the connection to TensorFlow's other tasks"),
    ],
    ids=[
        "DDP",
        "forward within DDP",
        "collective of a module",
        "user's forward within DDP",
        "torchrun's record",
        "checkpoint's files",
        "checkpoint's plan",
        "a method",
        "a handle of ZeRO",
        "a method of TensorFlow",
    ],
)
def test_what_encloses_a_computation_does_not_wait(frames: tuple[Frame, ...], collective: str) -> None:
    assert Stack(0, frames).collective == collective


def test_a_method_with_a_name_of_mpi_waits_only_with_mpi4py(script: str) -> None:
    stack = _stack(0, "mpi", script)
    assert (stack.collective, replace(stack, uses_mpi=False).collective) == ("barrier", "")


def test_a_task_of_ray_that_computes_does_not_hang(script: str) -> None:
    stacks = [_stack(0, "ray.get", script), replace(_stack(1, "task", script), is_idle=False)]
    assert of_hang("train", _running(2), stacks, 300) is None


def test_a_rank_that_waits_in_what_the_others_have_called_is_not_to_blame(script: str) -> None:
    calls = [Call("0", number, "gloo", "all_reduce", where="train.py:3") for number in (4, 5)]
    recordings = [Recording(0, tuple(calls)), Recording(1, (calls[0],)), Recording(2, tuple(calls))]
    stacks = [_stack(rank, "all_reduce", script) for rank in range(3)]
    verdict = of_hang("train", _running(3), stacks, 60, recordings)
    assert verdict is not None
    assert verdict.rank is None
    assert verdict.reason == (
        "rank 1 waits in all_reduce (train.py:3) for 60 s, which all ranks have called, and no message arrives"
    )
    stacks[1] = _stack(1, "barrier", script)
    verdict = of_hang("train", _running(3), stacks, 60, recordings)
    assert verdict is not None
    assert (verdict.rank, verdict.where) == (1, "train.py:4")


def test_ranks_that_wait_in_collectives_of_different_process_groups(script: str) -> None:
    """DeepSpeed reduces in a process group of its own; the script's barrier is in torch's default one."""
    reduces = [Call("1", number, "gloo", "all_reduce", where="train.py:3") for number in (1, 2)]
    barriers = [Call("0", number, "gloo", "barrier", where="train.py:4") for number in (1, 2)]
    ahead = Recording(0, (reduces[0], barriers[0], reduces[1]))
    stacks = [_stack(0, "all_reduce", script), _stack(1, "barrier", script)]
    verdict = of_hang("train", _running(2), stacks, 60, [ahead, Recording(1, (reduces[0], barriers[0]))])
    assert verdict is not None
    assert verdict.rank is None
    assert verdict.reason == (
        "rank 1 waits in barrier (train.py:4) for 60 s, which all ranks have called, and no message arrives"
    )
    first_of_its_group = Recording(0, tuple(reduces)), Recording(1, (reduces[0], barriers[0]))
    for recordings in ([ahead, Recording(1, (reduces[0], *barriers))], first_of_its_group):
        verdict = of_hang("train", _running(2), stacks, 60, recordings)
        assert verdict is not None
        assert verdict.rank == 1
        assert verdict.reason.startswith("it waits in barrier, and rank 0 waits for it in all_reduce (train.py:3)")


def test_ranks_that_wait_for_each_other_in_different_process_groups(script: str) -> None:
    stacks = [_stack(rank, what, script) for rank, what in enumerate(("all_reduce", "barrier", "barrier", "barrier"))]
    groups = ("1", "2", "0", "0")
    calls = [Call(group, 1, "gloo", stack.collective) for group, stack in zip(groups, stacks, strict=True)]
    verdict = of_hang("train", _running(4), stacks, 60, [Recording(*each) for each in enumerate((c,) for c in calls)])
    assert verdict is not None
    assert verdict.rank is None
    assert verdict.reason == (
        "ranks wait in different process groups: rank 0 in all_reduce of group 1 (train.py:3), rank 1 in barrier of"
        " group 2 (train.py:4), ranks 2 and 3 in barrier of the default group (train.py:4) for 60 s"
    )


@pytest.mark.parametrize(("host", "port"), [("localhost", "6105"), ("10.0.0.4", "6106")])
def test_a_rank_that_connects_to_another_address(host: str, port: str, script: str) -> None:
    stacks = [
        replace(_stack(rank, "init_process_group", script), settings={"hostname": "10.0.0.4", "port": "6105"})
        for rank in range(3)
    ]
    stacks[1] = replace(stacks[1], settings={"hostname": host, "port": port})
    verdict = of_hang("train", _running(3), stacks, 60)
    assert verdict is not None
    reason = f"it joins a process group at {host}:{port}, and ranks 0 and 2 at 10.0.0.4:6105"
    assert (verdict.rank, verdict.reason) == (1, reason)


def test_of_two_addresses_that_of_the_rank_that_is_not_the_master_is_wrong(script: str) -> None:
    stacks = [
        replace(_stack(rank, "init_process_group", script), settings={"hostname": "10.0.0.4", "port": f"610{rank}"})
        for rank in range(2)
    ]
    verdict = of_hang("train", _running(2), stacks)
    assert verdict is not None
    assert verdict.rank == 1


def test_a_thread_that_does_not_end(script: str) -> None:
    thread = "its thread uploader, which is at `send()` (train.py:9)"
    stacks = [_stack(0, "exiting", script), replace(_stack(1, "exiting", script), waits_for=thread)]
    ranks = _running(2)
    verdict = of_hang("train", ranks, stacks, 60)
    assert verdict is not None
    assert (verdict.rank, verdict.reason) == (1, f"it waits for {thread} for 60 s")
    assert of_hang("train", ranks, [_stack(0, "sleep", script), stacks[1]], 60) is None
    verdict = of_hang("train", ranks, [_stack(0, "all_reduce", script), stacks[1]], 60)
    assert verdict is not None
    assert verdict.reason == f"it waits for {thread}, and rank 0 waits for it in all_reduce for 60 s"


def test_the_exception_of_a_thread_that_a_rank_waits_for(script: str, tmp_path: Path) -> None:
    ranks = _running(2)
    ranks[1].log = str(tmp_path / "log")
    lines = 'Traceback (most recent call last):\n  File "/code/load.py", line 3, in load\nValueError: bad shard\n'
    Path(ranks[1].log).write_text(f"Exception in thread Thread-1 (load):\n{lines}")
    verdict = of_hang("train", ranks, [_stack(0, "all_reduce", script), _stack(1, "sleep", script)], 60)
    assert verdict is not None
    assert verdict.reason == (
        "a thread of it ended with ValueError: bad shard (load.py:3), and it is at `time.sleep(1000)`, and rank 0 waits"
        " for it in all_reduce for 60 s"
    )


def test_a_rank_that_exits_while_another_one_loses_it(script: str, tmp_path: Path) -> None:
    """Horovod and torch close their connections before the process ends."""
    ranks = _running(3)
    for rank, text in zip(ranks, ("RuntimeError: x", "", "ValueError: y"), strict=True):
        rank.log = str(tmp_path / str(rank.rank))
        Path(rank.log).write_text(f"Traceback (most recent call last):\n{text}\n" if text else "step 3\n")
    lost = Verdict("train", "HorovodInternalError: Horovod has been shut down", rank=0, instance_rank=0)
    verdict = of_time_out(lost, ranks, [_stack(rank, "exiting", script) for rank in range(3)])
    assert (verdict.rank, verdict.reason) == (1, "it exits, and rank 0 lost the connection to it")
    assert of_time_out(lost, ranks, [_stack(1, "sleep", script)]) == lost


def test_where_the_rank_is_that_monitored_barrier_names(script: str) -> None:
    said = Verdict("train", "Rank 1 failed to pass monitoredBarrier in 3000 ms, says rank 0", rank=1, instance_rank=0)
    stacks = [_stack(rank, "sleep", script) for rank in (2, 1)]
    verdict = of_time_out(said, _running(3), stacks)
    assert (verdict.rank, verdict.where) == (1, "train.py:2")
    assert verdict.reason == "it is at `time.sleep(1000)`, and rank 0 waited for it in vain"
    assert of_time_out(said, _running(3), stacks[:1]) == said


def test_a_rank_that_has_ended_before_the_others(script: str) -> None:
    ranks = [*_running(2), make_ranks(1, 3)[2]]
    verdict = of_hang("train", ranks, [_stack(rank, "all_reduce", script) for rank in (0, 1)], 60)
    assert verdict is not None
    assert (verdict.rank, verdict.where) == (2, "")
    assert verdict.reason == "it ended with exit code 0, and ranks 0 and 1 wait for it in all_reduce for 60 s"


def test_the_time_out_of_one_rank_blames_the_one_that_it_waited_for(script: str) -> None:
    timed_out = Verdict("train", "RuntimeError: Timed out waiting 8000ms for recv operation", rank=0, instance_rank=0)
    verdict = of_time_out(timed_out, make_ranks(2, 1), [_stack(1, "sleep", script)])
    assert (verdict.rank, verdict.instance_rank, verdict.where) == (1, 1, "train.py:2")
    assert verdict.consequences == ("rank 0: RuntimeError: Timed out waiting 8000ms for recv operation",)
    assert of_time_out(timed_out, make_ranks(2, 1), [_stack(1, "all_reduce", script)]) is timed_out


def test_halves_of_the_ranks_that_wait_in_the_same_collective(script: str) -> None:
    first, second = (replace(_stack(rank, "keras", script), is_idle=True) for rank in (0, 1))
    second = replace(second, frames=(*second.frames[:-1], replace(second.frames[-1], line=3)))
    verdict = of_hang("train", _running(2), [first, second], 9)
    assert verdict is not None
    assert verdict.rank is None
    name = "a function of TensorFlow"
    places = f"rank 0 waits in {name} (train.py:5), and rank 1 in {name} (train.py:3)"
    assert verdict.reason == f"{places} for 9 s, and no message arrives"


@pytest.mark.parametrize(
    ("instances", "elsewhere", "blamed"), [(2, (0, 1), None), (2, (0, 2), 0), (2, (0,), 0), (1, (0, 1), 0)]
)
def test_the_ranks_of_an_instance_that_wait_elsewhere(
    instances: int, elsewhere: tuple[int, ...], blamed: int | None, script: str
) -> None:
    ranks = make_ranks(instances, 4 // instances)
    for rank in ranks:
        rank.status = Status.RUNNING
    stacks = [_stack(rank, "barrier" if rank in elsewhere else "all_reduce", script) for rank in range(4)]
    verdict = of_hang("train", ranks, stacks, 9)
    assert verdict is not None
    assert verdict.rank == blamed
    if blamed is None:
        places = "ranks 0 and 1 wait in barrier (train.py:4), and ranks 2 and 3 in all_reduce (train.py:3)"
        assert verdict.reason == f"{places} for 9 s, and no message arrives"


def test_ranks_that_all_wait_in_backward(script: str) -> None:
    stacks = [replace(_stack(rank, "backward", script), is_idle=True) for rank in (0, 1)]
    verdict = of_hang("train", _running(2), stacks, 300)
    assert verdict is not None
    assert verdict.reason == "every rank waits in backward (train.py:5) for 300 s, and no message arrives"


@pytest.mark.parametrize("sizes", [("4", "5", "4"), ("3", "5", "")], ids=["most ranks", "the number of ranks"])
def test_a_rank_with_another_world_size(script: str, sizes: tuple[str, ...]) -> None:
    stacks = [
        replace(_stack(rank, "init_process_group", script), settings={"world_size": size} if size else {})
        for rank, size in enumerate(sizes)
    ]
    verdict = of_hang("train", _running(3), stacks, 300)
    assert verdict is not None
    assert verdict.rank == 1
    assert verdict.reason.startswith("it joins a process group with world size 5, and rank")


def test_a_rank_that_waits_for_more_ranks_than_have_joined(script: str) -> None:
    joining = replace(_stack(0, "init_process_group", script), settings={"world_size": "3"})
    verdict = of_hang("train", _running(2), [joining, _stack(1, "all_reduce", script)])
    assert verdict is not None
    assert verdict.rank == 0
    assert verdict.reason.startswith("it waits in init_process_group with world size 3, and rank 1 in all_reduce")


def test_workers_have_the_count_of_their_launcher(script: str) -> None:
    stacks = [replace(_stack(1, "all_reduce", script), worker=2), replace(_stack(1, "sleep", script), worker=3)]
    verdict = of_hang("train", make_ranks(2, 1), stacks)
    assert verdict is not None
    assert (verdict.rank, verdict.worker) == (1, 3)
    assert verdict.consequences == ("rank 2: in all_reduce (train.py:3)",)
