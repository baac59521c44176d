"""Random faults by the evidence that they leave: exits in some order, logs, stacks. The verdict finds the rank and the
cause. ``ALLRANKS_FAULT_SEEDS=500`` is the long form."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.history.records import RankRecord, Status, Verdict
from allranks.verdict import folder, judge
from allranks.verdict.hangs import of_hang
from allranks.verdict.rank_stack import Frame, Stack

SEEDS = int(os.environ.get("ALLRANKS_FAULT_SEEDS", "100"))
CAUSES = (
    "ValueError: bad batch in shard 7",
    "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/shard-3'",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "OSError: [Errno 28] No space left on device: 'model.pt'",
    "KeyError: 'LOCAL_RANK'",
    "FloatingPointError: the loss is nan at step 40",
    "ModuleNotFoundError: No module named 'tokenizer_of_the_team'",
    "AssertionError",
)
CONSEQUENCES = (
    "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.77.0.10]:168.",
    "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [10.0.0.5]:2: Connection reset by peer",
    "torch.distributed.DistBackendError: NCCL error: ncclRemoteError: A call failed, possibly due to a network error",
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception",
    "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation",
)
NOISE = (
    "",
    "epoch 1: loss 0.31\n",
    'Traceback (most recent call last):\n  File "/code/data.py", line 3, in load\n    read()\nOSError: retried\n'
    + "reading again\n" * 40,
    "[W1126 socket.cpp:764] The client socket has failed to connect to [10.0.0.4]:6105\n" + "step\n" * 40,
)
TORCH = "/venv/lib/python3.11/site-packages/torch"


def raised(text: str, rank: int | None = None) -> str:
    lines = f'Traceback (most recent call last):\n  File "/code/train.py", line 10, in <module>\n    step()\n{text}\n'
    return lines if rank is None else "".join(f"[rank{rank}]: {line}\n" for line in lines.splitlines())


class Scene:
    """A job of 2 to 8 ranks, of which one is to blame."""

    def __init__(self, seed: int, logs: Path) -> None:
        self.random = random.Random(seed)
        self.count = self.random.randint(2, 8)
        self.guilty = self.random.randrange(self.count)
        self.logs = logs
        logs.mkdir(parents=True)

    def rank(
        self, number: int, text: str, status: Status, ended: float, code: int | None, name: str | None
    ) -> RankRecord:
        log = self.logs / f"std_log_process_{number}.txt"
        log.write_text(self.random.choice(NOISE) + text)
        each = 1 if self.count % 2 else 2
        return RankRecord(number, number // each, number % each, "", status, 0.0, ended, code, name, str(log))

    def ends(self, cause: str, own: str) -> list[RankRecord]:
        """The ranks after one of them has ended: the others lose it, before or after it has exited, are ended by the
        engine, or by their launcher."""
        found = []
        for number in range(self.count):
            ended = 100.0 + self.random.random()
            if number == self.guilty:
                code, name = (None, cause) if cause.startswith("SIG") else (1 if own else 3, None)
                found.append(self.rank(number, own, Status.FAILED, ended, code, name))
                continue
            how = self.random.choice(("lost", "lost", "killed", "terminated"))
            if how == "lost":
                text = self.random.choice(CONSEQUENCES)
                text = raised(text, number if self.random.random() < 0.5 else None)
                found.append(self.rank(number, text, Status.FAILED, ended, 1, None))
            else:
                name = "SIGKILL" if how == "killed" else "SIGTERM"
                found.append(self.rank(number, "", Status.CANCELED, ended + 2, None, name))
        return found


def _exception(scene: Scene) -> tuple[Verdict | None, str]:
    cause = scene.random.choice(CAUSES)
    own = raised(cause, scene.guilty if scene.random.random() < 0.5 else None)
    if scene.random.random() < 0.3:
        own += "\nDuring handling of the above exception, another exception occurred:\n\n" + raised(CONSEQUENCES[0])
        own = own.replace(f"[rank{scene.guilty}]: ", "")
    return judge.of_ranks("train", scene.ends(cause, own), {}), cause


def _signal(scene: Scene) -> tuple[Verdict | None, str]:
    cause = scene.random.choice(("SIGKILL", "SIGSEGV", "SIGBUS"))
    return judge.of_ranks("train", scene.ends(cause, ""), {}), f"ended by {cause}"


def _exit_code(scene: Scene) -> tuple[Verdict | None, str]:
    return judge.of_ranks("train", scene.ends("exit", ""), {}), "exit code 3"


def _hang(scene: Scene) -> tuple[Verdict | None, str]:
    script = scene.logs / "train.py"
    script.write_text("loss.backward()\ntime.sleep(1000)\ndist.all_reduce(loss)\ndist.barrier()\n")
    collective = (Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 1), Frame("<module>", str(script), 3))
    backward = (Frame("_engine_run_backward", f"{TORCH}/autograd/graph.py", 800), Frame("<module>", str(script), 1))
    asleep = (Frame("<module>", str(script), 2),)
    frames, stopped, reason = scene.random.choice(
        (
            (asleep, False, "it is at `time.sleep(1000)`"),
            ((), False, "it exits"),
            (collective, True, "it is stopped by a signal"),
        )
    )
    others = backward if scene.random.random() < 0.3 else collective
    stacks = [
        Stack(number, frames, is_stopped=stopped) if number == scene.guilty else Stack(number, others)
        for number in range(scene.count)
    ]
    ranks = [scene.rank(number, "", Status.RUNNING, 0.0, None, None) for number in range(scene.count)]
    scene.random.shuffle(stacks)
    return of_hang("train", ranks, stacks, 300.0), reason


def _logs(scene: Scene) -> tuple[Verdict | None, str]:
    """The logs alone, where each other rank lost the connection, or gave up waiting."""
    cause = scene.random.choice((*CAUSES, ""))
    for number in range(scene.count):
        text = raised(scene.random.choice(CONSEQUENCES))
        if number == scene.guilty:
            text = raised(cause) if cause else ""
        scene.rank(number, text, Status.FAILED, 0.0, None, None)
    (verdict,) = folder.verdicts(scene.logs)
    return verdict, cause or "its log ends without an exception"


KINDS: tuple[Callable[[Scene], tuple[Verdict | None, str]], ...] = (_exception, _signal, _exit_code, _hang, _logs)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_the_rank_and_the_cause_of_random_faults(kind: Callable, tmp_path: Path) -> None:
    for seed in range(KINDS.index(kind), SEEDS, len(KINDS)):
        scene = Scene(seed, tmp_path / str(seed) / "user_logs")
        verdict, reason = kind(scene)
        assert verdict is not None, f"seed {seed}"
        assert (verdict.rank, verdict.reason[: len(reason)]) == (scene.guilty, reason), f"seed {seed}"
