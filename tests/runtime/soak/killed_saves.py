"""Trainings whose processes are killed at random moments of saving: is the newest state always readable, and right?

    python tests/runtime/soak/killed_saves.py --kills 200

Two ranks, forked from a process that has imported torch, train and save after every step. After a random time, SIGKILL
ends one of them or both. Then the next two ranks load what is there: every checkpoint with a manifest must be intact,
the step must be at least the last one whose `save` had returned, and every value must be that of the step. 1 is
returned if one is not. The seed, which is printed, repeats the choices.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch

from allranks import runtime
from allranks.contract.launch import Launch
from allranks.contract.produce import environment, processes
from allranks.contract.pytorch import PyTorch
from allranks.runtime.checkpoints import manifest, reading
from allranks.runtime.tensors.tensor_shards import replicated

RANKS = 2
VALUES = 1 << 18
"""A megabyte: most of a step is saving."""
LONGEST_SECONDS = 0.4


class Numbers:
    """A state whose every value is the number of the step."""

    def __init__(self) -> None:
        self.shared = torch.zeros(8, VALUES // 8)
        self.main = torch.zeros(64)
        self.step = 0

    def fill(self, step: int) -> None:
        self.shared.fill_(step)
        self.main.fill_(step)
        self.step = step

    def state_dict(self) -> dict[str, object]:
        return {"shared": replicated(self.shared), "main": self.main, "step": self.step}

    def load_state_dict(self, state: dict[str, object]) -> None:
        for name in ("shared", "main"):
            values = state[name]
            assert isinstance(values, torch.Tensor)
            assert torch.equal(values, torch.full_like(values, float(str(state["step"])))), f"{name} is of another step"
        self.fill(int(str(state["step"])))


@dataclass(frozen=True)
class Reports:
    """A file to which rank 0 adds what happened, which a kill does not take away.

    path: each line is a word and a step: "loaded 7", "saved 8"
    """

    path: Path

    def add(self, word: str, step: int) -> None:
        with self.path.open("a") as file:
            file.write(f"{word} {step}\n")

    def steps(self, word: str) -> list[int]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [int(step) for known, step in map(str.split, lines) if known == word]


def rank(place: dict[str, str], folder: Path, reports: Reports, seed: int) -> None:
    """Train for ever, in a forked process."""
    try:
        os.environ.update(place)
        torch.set_num_threads(1)
        os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)

        def train(ranks: runtime.Ranks) -> None:
            numbers = Numbers()
            checkpoints = runtime.Checkpoints(folder / "checkpoints", ranks, {"numbers": numbers}, every_steps=1)
            step = checkpoints.load()
            assert numbers.step == step
            choose = random.Random(seed + step)  # the same on every rank
            if ranks.is_main:
                reports.add("loaded", step)
            while True:
                step += 1
                numbers.fill(step)
                if choose.random() < 0.3:
                    checkpoints.save(step)
                    if ranks.is_main:
                        reports.add("saved", step)
                else:
                    checkpoints.save_if_due(step)

        runtime.main(train, timeout_seconds=60)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)


def attempt(folder: Path, reports: Reports, choose: random.Random) -> None:
    """Start the ranks, wait until they have loaded, and kill some at a random moment; the others end by themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = Launch(PyTorch(RANKS), ("127.0.0.1",), ("localhost",), port)
    seed, delay = choose.randrange(1 << 30), choose.uniform(0, LONGEST_SECONDS)
    victims = choose.choice(([0], [1], [0, 1]))
    loads = len(reports.steps("loaded"))
    children = []
    for process in processes(launch):
        child = os.fork()
        if child == 0:
            rank(environment(launch, process), folder, reports, seed)
        children.append(child)
    ended: dict[int, int] = {}
    try:
        while len(reports.steps("loaded")) == loads:
            for child in children:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    ended[pid] = status
                    raise AssertionError(f"a rank could not load:\n{(folder / 'stderr').read_text()[-3000:]}")
            time.sleep(0.002)
        time.sleep(delay)
        for victim in victims:
            os.kill(children[victim], signal.SIGKILL)
        time.sleep(choose.choice((0, 0.05)))  # the other one may be completing its part
    finally:
        for child in children:
            if child not in ended:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def check(folder: Path, reports: Reports) -> None:
    """Raise AssertionError if a checkpoint with a manifest is damaged, or one that was complete is gone."""
    checkpoints = folder / "checkpoints"
    complete = manifest.complete(checkpoints)
    for entry in manifest.entries(checkpoints):
        assert entry in complete or not (entry.path / "manifest.json").exists(), f"the manifest of {entry.path} is torn"
    for entry in complete:
        assert manifest.is_intact(entry), f"{entry.path} has a manifest, and is damaged"
    newest = complete[0].step if complete else 0
    assert newest >= max([0, *reports.steps("saved"), *reports.steps("loaded")]), f"step {newest} is the newest"
    if complete:
        numbers = Numbers()
        state = reading.open_checkpoint(complete[0]).parts["numbers"]
        numbers.load_state_dict({**state, "shared": state["shared"].full(), "main": state["main"].full()})
        assert numbers.step == newest


def soak(kills: int, seed: int) -> None:
    """Kill so many times in one folder. Raise AssertionError as `check` does."""
    choose = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="killed-saves-"))
    reports = Reports(folder / "reports")
    try:
        for number in range(kills):
            try:
                attempt(folder, reports, choose)
                check(folder, reports)
            except AssertionError as error:
                raise AssertionError(f"kill {number} of seed {seed}: {error}") from error
        steps = reports.steps("loaded")
        print(f"{kills} kills, seed {seed}: every newest state was readable; {steps[-1]} steps were loaded in the end")
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="number of kills")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    try:
        soak(args.kills, args.seed)
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
