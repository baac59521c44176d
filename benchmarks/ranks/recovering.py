"""A training on CPUs that is resumed from its last checkpoint: recovering.py FOLDER [torchft].

Each rank appends the time of each training step to FOLDER/times. By torchft, each rank is a replica, which continues
without those that are gone.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed, nn

STEPS, EVERY, PAUSE = 120, 5, 0.05

folder, by_torchft = Path(sys.argv[1]), "torchft" in sys.argv
folder.mkdir(exist_ok=True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
optimizer = torch.optim.Adam(model.parameters())
if by_torchft:
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    def save():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    number = os.environ["REPLICA"]
    port = int(os.environ["MASTER_PORT"])
    store = distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)  # otherwise torchrun's
    manager = Manager(
        ProcessGroupGloo(), load, save, min_replica_size=1, replica_id=f"replica_{number}", rank=0, world_size=1
    )
    wrapped, stepping, rank = DistributedDataParallel(manager, model), Optimizer(manager, optimizer), int(number)
else:
    distributed.init_process_group("gloo")
    rank, wrapped, stepping = distributed.get_rank(), nn.parallel.DistributedDataParallel(model), optimizer
# A process id may be used again.
own = {"rank": rank, "pid": os.getpid(), "parent": os.getppid(), "process": os.urandom(8).hex()}
step, checkpoint = 0, folder / "checkpoint.pt"
if not by_torchft and checkpoint.exists():
    state = torch.load(checkpoint)
    step = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
with open(folder / "times", "a", encoding="utf-8") as times:
    while step < STEPS:
        stepping.zero_grad()
        wrapped(torch.ones(8, 512)).square().mean().backward()
        stepping.step()
        step = manager.current_step() if by_torchft else step + 1
        times.write(json.dumps(own | {"step": step, "time": time.time()}) + "\n")
        times.flush()
        time.sleep(PAUSE)
        if not by_torchft and rank == 0 and step % EVERY == 0:
            parts = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(parts, checkpoint.with_suffix(".new"))
            os.replace(checkpoint.with_suffix(".new"), checkpoint)
