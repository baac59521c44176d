"""prepare_docstrings: the documentation of Python's standard library as data for fine-tuning language models.

prepare_docstrings(kind="chat", packages="json,email,logging")
"""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../../environments/cpu/environment.yaml"


@command_component(
    name="allranks_prepare_docstrings",
    version="0.1.0",
    display_name="Prepare docstrings",
    description=(
        "Reads the documentation of packages of Python's standard library from their sources, and writes it as data "
        "for fine-tuning: texts, conversations of a question and its answer, preferences of a right over a wrong "
        "answer, and texts labelled with their package. Nothing is downloaded."
    ),
    tags={"task": "language-modelling", "launch": "single process"},
    is_deterministic=True,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def prepare_docstrings(
    train: Output(type="uri_folder", mode="rw_mount", description="train.jsonl, the records to train on."),
    validation: Output(type="uri_folder", mode="rw_mount", description="validation.jsonl, the held-out records."),
    kind: Input(
        type="string",
        enum=["text", "chat", "preferences", "labelled"],
        description=(
            'What a record is. text: {"text": ...}; chat: {"messages": [...]}; preferences: {"prompt": [...], '
            '"chosen": [...], "rejected": [...]}; labelled: {"text": ..., "label": the package}.'
        ),
    ) = "chat",
    packages: Input(
        type="string", description="Packages and modules of the standard library, separated by commas. Each is a label."
    ) = "asyncio,email,importlib,logging,multiprocessing,unittest",
    validation_fraction: Input(
        type="number", min=0.001, max=0.5, description="Share of the documented names that is held out."
    ) = 0.1,
    seed: Input(type="integer", min=0, description="Seed of the division: the same seed gives the same files.") = 0,
):
    # Imported here: only a job has this folder on its path.
    from docstrings import BadPackages, read
    from preparation import prepare

    chosen = [name for name in (name.strip() for name in packages.split(",")) if name]
    try:
        names = read(chosen)
    except BadPackages as error:
        print(f"prepare_docstrings: input packages: {error}", file=sys.stderr)
        sys.exit(2)
    counts = prepare(names, kind, validation_fraction, seed, Path(train), Path(validation))
    print(", ".join(f"{split}: {count:,} records" for split, count in counts.items()))
