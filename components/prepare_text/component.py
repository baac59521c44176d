"""prepare_text: a folder of text files as the tokens that a language model is trained on.

prepare_text(folder=Input(type="uri_folder", path="notes"), pattern="**/*.md", vocabulary_size=1024)
"""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../environments/cpu/environment.yaml"


@command_component(
    name="prepare_text",
    version="0.1.0",
    display_name="Prepare text",
    description=(
        "Reads the text files of a folder, or the sources of Python's standard library, divides them into training and "
        "validation files, trains a byte-level BPE tokenizer on the training files, and writes their tokens as arrays. "
        "The perplexity of a unigram model on the validation tokens comes with them: what a language model has to beat."
    ),
    tags={"task": "language-modelling", "launch": "single process"},
    is_deterministic=True,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def prepare_text(
    text: Output(
        type="uri_folder",
        description=(
            "The tokens of each split as a NumPy file (uint16, one dimension), tokenizer.json of the library "
            "tokenizers, and description.json about them."
        ),
    ),
    folder: Input(
        type="uri_folder",
        optional=True,
        description="A folder of text files in UTF-8. Without it, Python's standard library without its tests.",
    ) = None,
    pattern: Input(
        type="string",
        description="Which files are read, as a glob. Files that hold no text are left out and counted.",
    ) = "**/*",
    vocabulary_size: Input(
        type="integer", min=257, max=65536, description="Tokens of the tokenizer: the 256 bytes, the end, and merges."
    ) = 2048,
    validation_fraction: Input(
        type="number", min=0.001, max=0.5, description="Share of the files that goes to validation, at least one file."
    ) = 0.02,
    seed: Input(type="integer", min=0, description="Seed of the division: the same seed gives the same files.") = 0,
):
    # Imported here: only a job has this folder on its path, and only a job needs NumPy.
    from preparation import Request, prepare
    from prepared_text import BadData

    request = Request(
        folder=Path(folder) if folder else None,
        pattern=pattern,
        vocabulary_size=vocabulary_size,
        validation_fraction=validation_fraction,
        seed=seed,
    )
    try:
        description = prepare(request, Path(text))
    except BadData as error:
        print(f"prepare_text: {error}", file=sys.stderr)
        sys.exit(2)
    for split, files in description.files.items():
        print(f"{split}: {description.tokens[split]:,} tokens of {description.bytes[split]:,} bytes in {files} files")
    for why, count in description.skipped.items():
        print(f"left out: {count} files ({why})")
    print(f"perplexity of a unigram model on the validation tokens: {description.unigram_perplexity:.1f}")
