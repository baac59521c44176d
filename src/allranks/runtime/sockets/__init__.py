"""Ranks without torch: they are connected by sockets, for libraries that bring their own communication (LightGBM), and
for steps that only add up results.

    from allranks.runtime import sockets

    def evaluate(ranks: sockets.Ranks) -> None:
        counts = ranks.all_gather(count(own_part))

    if __name__ == "__main__":
        sockets.main(evaluate)

The same script runs under every launcher that the contract supports, and as a single process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allranks.runtime.sockets.ranks import Ranks, main

__all__ = ["Ranks", "main"]


def __getattr__(name: str) -> Any:
    # Imported on first use: a launch component needs only the rendezvous, and not NumPy.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("allranks.runtime.sockets.ranks"), name)
