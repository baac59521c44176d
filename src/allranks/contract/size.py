"""The variable by which a training process is told what Azure size its instance has: Azure ML itself tells none."""

from __future__ import annotations

VARIABLE = "ALLRANKS_SIZE"
"""A size such as Standard_ND96asr_v4, set by a component or a user. Without it the instance itself is looked at."""

NONE = "none"
"""As the value of that variable: leave every setting of the network to the user and to NCCL."""
