"""The size of the prepared text for a training, and the loss on its validation part."""

from collections.abc import Callable

import torch
from torch import nn

from allranks import runtime
from allranks_steps.messages import bad_input
from allranks_steps.text.windows import Windows, divided


def require_batch(windows: Windows, batch_size: int, world_size: int) -> None:
    """Raise InputError if the windows do not fill one batch of every rank. batch_size: of one rank."""
    if len(windows) < batch_size * world_size:
        tokens, length = len(windows.tokens), windows.max_seq_length
        raise bad_input(
            "input per_device_train_batch_size",
            f"{batch_size} sequences of {length} tokens on each of {world_size} ranks, from {tokens:,} tokens",
            f"at least {batch_size * world_size * length + 1:,} training tokens",
            "give a smaller per_device_train_batch_size or max_seq_length, fewer ranks, or more text",
        )


def require_window(validation: Windows) -> None:
    """Raise InputError if the validation tokens are fewer than a window."""
    if not len(validation):
        raise bad_input(
            "input eval_steps",
            f"{len(validation.tokens):,} validation tokens",
            f"at least {validation.max_seq_length + 1:,}: a sequence, and the token after it",
            "leave eval_steps out, or give prepare_text more text or a larger validation_fraction",
        )


@torch.no_grad()
def validation_loss(
    model: nn.Module,
    windows: Windows,
    batch_size: int,
    max_samples: int,
    ranks: runtime.Ranks,
    *,
    interrupted: Callable[[], bool],
) -> dict[str, float] | None:
    """Return `loss`, the mean over the validation windows, each counted once; NaN if there is none. A collective.

    batch_size:  windows of one rank per forward pass
    max_samples: number of windows, the first ones; -1: all
    interrupted: called on every rank before each forward pass. If it returns True, None is returned
    """
    count = len(windows) if max_samples < 0 else min(max_samples, len(windows))
    total = torch.zeros((), dtype=torch.float64, device=ranks.device)
    for start in range(0, count, batch_size * ranks.world_size):
        if interrupted():
            return None
        first = start + ranks.rank * batch_size
        own = range(first, min(first + batch_size, count))
        # Every rank calls the model equally often, as a sharded model requires.
        batch = torch.stack([windows[index] for index in own or range(1)]).to(ranks.device)
        seen, following = divided(batch)
        total += model(seen, following).double() * len(own)
    return {"loss": ranks.reduce(total, "sum").item() / count if count else float("nan")}
