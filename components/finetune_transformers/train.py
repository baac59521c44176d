"""Tune a model of transformers with its Trainer, under any launch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from parallel import check_weights, check_world, share
from pretrained import TASKS, examples, load
from texts import read
from torch import distributed
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from allranks.runtime import Metrics, RankEnv, detect

TIMEOUT_SECONDS = 600
"""Time limit for waiting on the other ranks."""


class Figures(TrainerCallback):
    """Checks the weights after the first step of this process, and logs what the Trainer logs."""

    def __init__(self, env: RankEnv) -> None:
        self._env = env
        self._metrics = Metrics(is_main=env.rank == 0)
        self._checked = False

    def on_step_end(self, _args: Any, _state: Any, _control: Any, model: torch.nn.Module, **_: Any) -> None:
        if not self._checked:
            check_weights(self._env, model)
            self._checked = True

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        values = {
            f"train_{name}": value for name, value in logs.items() if name in ("loss", "grad_norm", "learning_rate")
        }
        if values:
            self._metrics.log(values, step=state.global_step, total=state.max_steps, epoch=int(state.epoch))

    def close(self, status: str) -> None:
        """Send the remaining metrics, with an MLflow status for the run."""
        self._metrics.close(status)


def main() -> None:
    args = arguments()
    env = detect()
    texts = read(args.data)
    model, tokenizer = load(args.model, args.task, texts)
    settings = TrainingArguments(
        output_dir=str(args.checkpoints),
        max_steps=args.steps,
        per_device_train_batch_size=share(args.batch_size, env.world_size),
        learning_rate=args.learning_rate,
        seed=args.seed,
        logging_steps=max(1, args.steps // 50),
        save_steps=args.checkpoint_every,
        save_total_limit=2,
        ddp_timeout=TIMEOUT_SECONDS,
        dataloader_pin_memory=torch.cuda.is_available(),
        disable_tqdm=True,
        report_to=[],
    )
    check_world(env, settings.world_size)
    figures = Figures(env)
    trainer = Trainer(
        model,
        settings,
        train_dataset=examples(tokenizer, args.task, texts, args.length),
        callbacks=[figures],
    )
    last = get_last_checkpoint(args.checkpoints) if args.checkpoints.is_dir() else None
    try:
        result = trainer.train(resume_from_checkpoint=last)
    except BaseException:
        figures.close("FAILED")
        raise
    figures.close("FINISHED")
    trainer.save_model(str(args.tuned))
    if env.rank == 0:
        tokenizer.save_pretrained(args.tuned)
        print(f"{env.world_size} ranks: mean loss of {args.steps} steps {result.training_loss:.4f}", flush=True)
    if distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--task", choices=TASKS, default="causal")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--checkpoint_every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
