"""compare_trainings: one page with the trainings of one model on top of each other.

compare_trainings(history_1=by_ddp.outputs.history, history_2=by_fsdp.outputs.history)
"""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../../environments/cpu/environment.yaml"
HISTORY = "The output `history` of a training (JSON with step, seconds and loss). The first is the one to compare with."


@command_component(
    name="allranks_compare_trainings",
    version="0.1.0",
    display_name="Compare trainings",
    description=(
        "Puts the loss curves of up to eight trainings on top of each other, with step time, memory and the largest "
        "difference of the loss from the first one's, on one page that needs no network."
    ),
    tags={"task": "comparison", "launch": "single process"},
    is_deterministic=True,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def compare_trainings(
    comparison: Output(
        type="uri_folder", mode="rw_mount", description="comparison.html, and comparison.json with its figures."
    ),
    history_1: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_2: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_3: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_4: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_5: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_6: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_7: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    history_8: Input(type="uri_file", mode="ro_mount", optional=True, description=HISTORY) = None,
    title: Input(type="string", description="The page's title.") = "Trainings compared",
):
    # Imported here: only a job has this folder on its path.
    from comparison import BadHistory, compare

    histories = (history_1, history_2, history_3, history_4, history_5, history_6, history_7, history_8)
    try:
        rows = compare([Path(history) for history in histories if history], title, Path(comparison))
    except BadHistory as error:
        print(f"compare_trainings: {error}", file=sys.stderr)
        sys.exit(2)
    for row in rows:
        print(f"{row.name}: loss {row.loss:.4f}, {row.step_seconds:.3f} s a step, {row.peak_memory:.0f} MiB")
