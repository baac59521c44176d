"""One step of Hugging Face's Trainer."""

import tempfile

import torch
from place import tell
from torch import distributed, nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.layer(x).sum()}


class Tell(TrainerCallback):
    def on_step_end(self, args: TrainingArguments, *_: object, **__: object) -> None:
        total = torch.tensor(float(args.process_index + 1))
        if args.world_size > 1:
            distributed.all_reduce(total)
        tell(
            rank=args.process_index, world_size=args.world_size, local_rank=args.local_process_index, total=total.item()
        )


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to=[], save_strategy="no", disable_tqdm=True)
    data = [{"x": torch.ones(1)} for _ in range(64)]
    Trainer(Model(), arguments, train_dataset=data, callbacks=[Tell()]).train()
