"""AdamW for a language model."""

from __future__ import annotations

import torch
from torch import nn, optim

BETAS = (0.9, 0.95)
"""As in Brown et al., arXiv:2005.14165, appendix B, and Llama 2: shorter than Adam's own for the second moment."""


def adamw(model: nn.Module, learning_rate: float, weight_decay: float, device: torch.device) -> optim.AdamW:
    """Return AdamW, fused where the device has it. Matrices decay; the scales of normalizations do not."""
    parameters = list(model.parameters())
    groups = [
        {"params": [parameter for parameter in parameters if parameter.dim() >= 2], "weight_decay": weight_decay},
        {"params": [parameter for parameter in parameters if parameter.dim() < 2], "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=learning_rate, betas=BETAS, fused=device.type in ("cpu", "cuda"))
