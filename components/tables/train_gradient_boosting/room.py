"""Disk space for the outputs of a boosting."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from allranks.runtime.output_room import outputs_of_training, require_room
from allranks.runtime.sockets import Ranks

BYTES_PER_LEAF = 115
"""Size of a leaf in LightGBM's text format, with the split above it."""


def check_room(args: argparse.Namespace, parameters: Mapping[str, Any], rows: int, ranks: Ranks) -> None:
    """Raise InputError if the disks of the outputs have no room for them. A collective.

    rows: training rows of all ranks, which limit the leaves of a tree
    """
    trees = args.num_iterations * int(parameters.get("num_class", 1))
    leaves = min(args.num_leaves, max(1, rows // max(1, args.min_data_in_leaf)))
    if args.max_depth > 0:
        leaves = min(leaves, 2**args.max_depth)
    model = trees * leaves * BYTES_PER_LEAF
    require_room(outputs_of_training(args.model, model, args.checkpoints, model, args.save_total_limit), ranks)
