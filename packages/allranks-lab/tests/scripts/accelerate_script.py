"""Train with Accelerate alone: its own way to save and load everything, also within an epoch."""

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, SAVED_EVERY = 64, 10

folder = Path(sys.argv[1])
accelerator = Accelerator(cpu=True)
set_seed(3)
x = torch.randn(256, 8)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
step = 0
if (folder / "step").exists():
    accelerator.load_state(str(folder / "state"))
    step = int((folder / "step").read_text())
while step < STEPS:
    epoch, done = divmod(step, len(loader))
    loader.set_epoch(epoch)
    for inputs, targets in accelerator.skip_first_batches(loader, done) if done else loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        step += 1
        if step % SAVED_EVERY == 0:
            accelerator.save_state(str(folder / "state"))
            if accelerator.is_main_process:
                (folder / "step").write_text(str(step))
            accelerator.wait_for_everyone()
