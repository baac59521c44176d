"""The states of this process's random number generators: Python's, numpy's, torch's and the GPU's."""

import random
import sys
import zlib
from typing import Any

import torch


def capture(device: torch.device) -> dict[str, Any]:
    """Return the states as plain values and tensors. numpy's state is included if numpy is imported."""
    states: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if numpy := sys.modules.get("numpy"):
        name, keys, *rest = numpy.random.get_state()
        states["numpy"] = (name, keys.tolist(), *rest)
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore(states: dict[str, Any], device: torch.device) -> None:
    """Restore the states that `capture` returned."""
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "numpy" in states:
        import numpy  # a training without it does not have to import it

        numpy.random.set_state(states["numpy"])
    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


def seed(text: str) -> None:
    """Seed all generators by a text, without numpy's if numpy is not imported."""
    number = zlib.crc32(text.encode())
    random.seed(number)
    torch.manual_seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number)
