"""The callback that logs, writes the history, and ends a training that is evicted."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch.distributed import HashStore, PrefixStore  # type: ignore[attr-defined]  # not in its __all__
from torch.distributed.distributed_c10d import _get_default_store

from allranks.runtime import EVICTED, Metrics
from allranks.runtime.clean_exit import Evicted, Eviction
from allranks.runtime.ranks.agreement import Agreement
from allranks_steps.history import History, peak_memory

LAST = "last.ckpt"
"""The last checkpoint in its folder."""


class Recorder(Callback):  # type: ignore[misc]  # its types are not read
    """Logs every `logging_steps` steps. If a rank receives SIGTERM, all ranks raise Evicted after the same step.

    samples: images of a step, over all ranks
    """

    def __init__(self, logging_steps: int, samples: int) -> None:
        self._logging_steps, self._samples = logging_steps, samples
        self._history = History("image")
        self._metrics: Metrics | None = None
        self._agreement: Agreement | None = None
        self._pause = ExitStack()
        self._step = 0

    def on_train_start(self, trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        self._metrics = Metrics(is_main=trainer.is_global_zero)
        # Now, since Lightning has set its own handler, which makes a collective: other ranks would not take part in it.
        self._eviction = Eviction()
        store = PrefixStore("allranks-agreement", _get_default_store()) if trainer.world_size > 1 else HashStore()
        self._agreement = Agreement(store, trainer.global_rank, trainer.world_size)
        self._step = trainer.global_step

    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, outputs: Any, _batch: Any, _index: int
    ) -> None:
        step, total = trainer.global_step, int(trainer.estimated_stepping_batches)
        if step == self._step:  # of several passes, all but the last
            return
        self._step = step
        self._history.count(self._samples)
        if step % self._logging_steps == 0 or step == total:
            self._add_point(trainer, module, outputs["loss"].detach().float())
        if step == total:
            trainer.should_stop = True  # otherwise Lightning validates only at the end of an epoch
        assert self._agreement is not None  # since the start of the training
        if self._eviction.requested:
            self._agreement.request(stop=True)
        if self._agreement.reach(step) and step < total:
            raise Evicted

    def _add_point(self, trainer: lightning.Trainer, module: lightning.LightningModule, own_loss: torch.Tensor) -> None:
        loss = float(trainer.strategy.reduce(own_loss, reduce_op="mean"))
        point = self._history.add(self._step, loss, peak_memory(module.device))
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        self._log(trainer, {"train_loss": loss, "learning_rate": rate, "step_seconds": point.seconds})

    def on_validation_start(self, _trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        self._pause.enter_context(self._history.paused())

    def on_validation_end(self, trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        self._pause.close()
        self._log(trainer, {name: float(value) for name, value in trainer.callback_metrics.items()})

    def state_dict(self) -> dict[str, Any]:
        return self._history.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._history.load_state_dict(state)

    def close(self, code: int) -> None:
        """Send the remaining metrics, and the end of the run. code: exit code of this process"""
        if self._agreement:
            self._agreement.close()
        if self._metrics:
            self._metrics.close({0: "FINISHED", EVICTED: "KILLED"}.get(code, "FAILED"))

    def write(self, file: Path, **about: Any) -> None:
        """Write the history."""
        self._history.write(file, about)

    def _log(self, trainer: lightning.Trainer, values: Mapping[str, float]) -> None:
        if self._metrics:
            total = int(trainer.estimated_stepping_batches)
            self._metrics.log(values, step=trainer.global_step, total=total, epoch=trainer.current_epoch)


class Checkpointing(ModelCheckpoint):  # type: ignore[misc]  # its types are not read
    """Saves every save_steps steps and at the end. Keeps the newest checkpoints, and the last one as last.ckpt."""

    def __init__(self, folder: Path, save_steps: int, save_total_limit: int) -> None:
        super().__init__(
            folder,
            filename="{step}",
            monitor="step",
            mode="max",
            save_top_k=save_total_limit or -1,
            save_last=True,
            every_n_train_steps=save_steps,
            save_on_train_epoch_end=False,
        )
        self._last, self._save_steps = folder / LAST, save_steps

    def on_train_end(self, trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        # Lightning itself saves at the end only if it has not saved before.
        if trainer.global_step % self._save_steps:
            trainer.save_checkpoint(self._last)
