"""Train until an eviction, or until saves by the clock have come.

evict.py STRATEGY evict RANK,...    these ranks are asked to end, at a moment within a step
evict.py STRATEGY validate RANK,... the same, within a validation that ends with the eviction alone
evict.py STRATEGY minutes           checkpoints are due by the clock, one after another

Each rank prints the steps at which it saved.
"""

import os
import signal
import sys
import threading

import torch
from torch.nn import functional

from allranks import runtime

SAVES = 3
FIRST = 30
"""The step in which the ranks are asked to end."""


def train(ranks: runtime.Ranks) -> None:
    what = sys.argv[2]
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()))
    every_minutes = 1e-9 if what == "minutes" else None
    checkpoints = runtime.Checkpoints("../checkpoints", ranks, {"training": training}, every_minutes=every_minutes)
    begun = threading.Event()
    if what != "minutes" and str(ranks.rank) in sys.argv[3].split(","):
        threading.Thread(target=ask_to_end, args=(begun,)).start()
    step = checkpoints.load()
    saves: list[int] = []
    begin = checkpoints._start
    checkpoints._start = lambda step, metric: (saves.append(step), begin(step, metric))[1]  # type: ignore[method-assign]
    try:
        while len(saves) < SAVES:
            if step == FIRST:
                begun.set()
            scores = training.model(torch.randn(16, 32))
            training.backward(functional.cross_entropy(scores, torch.randint(4, (16,))))
            training.step()
            step += 1
            if what == "validate" and step > FIRST:
                validate(training.model, checkpoints)
            checkpoints.save_if_due(step)
    finally:
        print(*saves)


@torch.no_grad()
def validate(model: torch.nn.Module, checkpoints: runtime.Checkpoints) -> None:
    while not checkpoints.interrupted():
        model(torch.randn(16, 32))  # of a sharded model, a collective


def ask_to_end(begun: threading.Event) -> None:
    begun.wait()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    runtime.main(train, strategy=sys.argv[1], timeout_seconds=60)
