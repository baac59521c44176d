"""prepare_text: a folder of text files as the tokens that a language model is trained on.

prepare_text(folder=Input(type="uri_folder", path="notes"), pattern="**/*.md", vocabulary_size=1024)
"""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../../environments/cpu/environment.yaml"


@command_component(
    name="allranks_prepare_text",
    version="0.1.0",
    display_name="Prepare text",
    description=(
        "Reads text files and JSON Lines, or the sources of Python's standard library, divides them into training and "
        "validation documents, and writes their tokens as shards that a training maps into memory. The tokenizer is an "
        "existing one, or a byte-level BPE tokenizer that is trained on the training documents. Memory does not grow "
        "with the corpus. The perplexity of a unigram model on the validation tokens comes with them: what a language "
        "model has to beat."
    ),
    tags={"task": "language-modelling", "launch": "single process"},
    is_deterministic=True,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def prepare_text(
    text: Output(
        type="uri_folder",
        mode="rw_mount",
        description=(
            "The tokens of each split as files of unsigned integers (train-00000.bin ...), tokenizer.json of the "
            "library tokenizers, and description.json with counts and checksums."
        ),
    ),
    folder: Input(
        type="uri_folder",
        mode="ro_mount",
        optional=True,
        description=(
            "A folder of text files in UTF-8, and of JSON Lines (.jsonl). Without it, Python's standard library "
            "without its tests."
        ),
    ) = None,
    tokenizer: Input(
        type="uri_file",
        mode="ro_mount",
        optional=True,
        description="A tokenizer.json to use. Without it, a tokenizer is trained.",
    ) = None,
    pattern: Input(
        type="string",
        description="Which files are read, as a glob. Files that hold no text are left out and counted.",
    ) = "**/*",
    text_field: Input(type="string", description="The key of the text in the lines of JSON Lines.") = "text",
    vocabulary_size: Input(
        type="integer",
        min=257,
        max=1000000,
        description="Tokens of a tokenizer that is trained: the 256 bytes, the end, and merges.",
    ) = 2048,
    end_token: Input(
        type="string",
        optional=True,
        description="The token of an existing tokenizer that ends a text. By default, a well-known one that it has.",
    ) = None,
    validation_fraction: Input(
        type="number",
        min=0.0001,
        max=0.5,
        description="Share of the documents that goes to validation, at least one.",
    ) = 0.02,
    shard_tokens: Input(
        type="integer", min=1024, max=1 << 32, description="Tokens in a file. A large corpus needs some hundred files."
    ) = 1 << 27,
    num_workers: Input(
        type="integer", min=0, max=1024, description="Processes that tokenize. 0: one for each core."
    ) = 0,
    seed: Input(type="integer", min=0, description="Seed of the division: the same seed gives the same documents.") = 0,
):
    # Imported here: only a job has this folder on its path, and only a job needs NumPy.
    from preparation import Request, prepare

    from allranks_steps.text.prepared_text import BadData

    request = Request(
        folder=Path(folder) if folder else None,
        pattern=pattern,
        text_field=text_field,
        tokenizer=Path(tokenizer) if tokenizer else None,
        end_token=end_token or "",
        vocabulary_size=vocabulary_size,
        validation_fraction=validation_fraction,
        shard_tokens=shard_tokens,
        num_workers=num_workers,
        seed=seed,
    )
    try:
        description = prepare(request, Path(text))
    except BadData as error:
        print(f"prepare_text: {error}", file=sys.stderr)
        sys.exit(2)
    for split, documents in description.documents.items():
        tokens, size = description.tokens[split], description.bytes[split]
        print(f"{split}: {tokens:,} tokens of {size:,} bytes in {documents:,} documents")
    for why, count in description.skipped.items():
        print(f"left out: {count} files ({why})")
    print(f"perplexity of a unigram model on the validation tokens: {description.unigram_perplexity:.1f}")
