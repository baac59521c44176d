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

from allranks.runtime.sockets.ranks import Ranks, main

__all__ = ["Ranks", "main"]
