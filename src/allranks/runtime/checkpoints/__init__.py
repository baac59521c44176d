"""Checkpoints that scale: sharded, written in the background, complete or absent."""

from __future__ import annotations

from allranks.runtime.checkpoints.checkpoints import Checkpoints, Stateful

__all__ = ["Checkpoints", "Stateful"]
