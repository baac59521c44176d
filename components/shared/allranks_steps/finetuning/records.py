"""Read the examples of a fine-tuning from files: conversations, texts, prompts with completions, preferences."""

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
from datasets import Dataset

from allranks.errors import InputError
from allranks_steps.messages import bad_input

FORMATS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv"}
"""Name of the builder in the library datasets, by suffix."""

Record = dict[str, Any]


def read(source: Path, parameter: str) -> Dataset:
    """Read the records of a file, or of all JSONL, parquet and CSV files in a folder and its sub-folders.

    The records are a memory-mapped table in the instance's temporary folder, which its ranks share: the first one
    writes it. Raise InputError if there is no file or no record, or a file cannot be read.
    """
    datasets.disable_progress_bars()
    files = sorted(file for file in source.rglob("*") if file.suffix in FORMATS) if source.is_dir() else [source]
    kinds = {FORMATS.get(file.suffix) for file in files}
    if len(kinds) != 1 or None in kinds:
        found = ", ".join(sorted({file.suffix or file.name for file in files})) or "no such file"
        expected = "files of one kind: JSONL, parquet or CSV"
        raise bad_input(f"input {parameter}", f"{source}: {found}", expected, "give such a file or folder")
    filled = [str(file) for file in files if file.stat().st_size]
    try:
        records = (
            datasets.load_dataset(kinds.pop(), data_files=filled, split="train", cache_dir=_cache()) if filled else ()
        )
    except (datasets.exceptions.DatasetGenerationError, ValueError) as error:
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        expected = "records with the same columns in every file"
        raise bad_input(f"input {parameter}", f"{source}: {reason}", expected, "correct the file") from error
    if not len(records):
        raise bad_input(f"input {parameter}", f"no record in {source}", "at least one", "give more data")
    return records


def split(records: Dataset, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Divide the records at random. Return the records to train on, and a fraction of at least one record to hold out.

    Raise InputError if no record remains.
    """
    held_out = max(1, round(fraction * len(records)))
    if held_out >= len(records):
        found = f"{held_out} of {len(records)} records held out"
        raise bad_input("input validation_fraction", found, "records to train on", "make it smaller")
    parts = records.train_test_split(held_out, seed=seed)
    return parts["train"], parts["test"]


def with_held_out(records: Dataset, args: Namespace) -> dict[str, Dataset]:
    """Return the records to train on as `data`, and held-out records, if any, as `validation_data`.

    records: of the input data

    Raise InputError.
    """
    if args.validation_data is not None:
        return {"data": records, "validation_data": read(args.validation_data, "validation_data")}
    if args.validation_fraction:
        return dict(zip(("data", "validation_data"), split(records, args.validation_fraction, args.seed), strict=True))
    return {"data": records}


def convert(records: Dataset, function: Callable[[Record, int], Record], columns: Sequence[str]) -> Dataset:
    """Apply a function to each record and its number, and return the result with these columns.

    The result is stored as `read` stores the records. A rank that calls this later reads the stored result.
    """
    others = [name for name in records.column_names if name not in columns]
    return records.map(function, with_indices=True, remove_columns=others)


def too_few(count: int, needed: int, what: str) -> InputError:
    """Return the InputError for fewer examples than a step of all ranks needs."""
    return bad_input(
        "input data",
        f"{count} {what}",
        f"at least {needed}: per_device_train_batch_size x gradient_accumulation_steps x ranks",
        "give more data, or make per_device_train_batch_size smaller",
    )


def _cache() -> str:
    # TMPDIR is the instance's; two jobs on one machine share nothing.
    name = "-".join(filter(None, ("datasets", str(os.getuid()), os.environ.get("AZUREML_RUN_ID", ""))))
    folder = Path(tempfile.gettempdir(), name)
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)
