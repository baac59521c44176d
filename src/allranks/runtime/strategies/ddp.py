"""torch's DistributedDataParallel: every rank holds the whole model, gradients are averaged over the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Ddp:
    """DistributedDataParallel on one device."""

    device: torch.device

    def prepare(self, model: nn.Module, **options: Any) -> nn.Module:
        """The model on its device, under DistributedDataParallel, whose options are passed on. A collective.

        A model without anything to train (a model to score) is only moved: torch refuses to wrap it.
        """
        model = model.to(self.device)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            return model
        if self.device.type == "cuda":
            options = {"device_ids": [self.device.index], **options}
        return DistributedDataParallel(model, **options)

    def unwrap(self, model: nn.Module) -> nn.Module:
        """The model inside the wrapper, or the model itself where there is none."""
        return model.module if isinstance(model, DistributedDataParallel) else model
