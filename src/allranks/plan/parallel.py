"""How a parallel step divides its data into mini-batches and passes them to the run function of its script."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.contract.templating import used_names


@dataclass(frozen=True)
class Parallel:
    """The settings of a parallel step.

    entry_script:    the script with `init`, `run` and `shutdown`, relative to the code
    input_data:      the data to divide, such as ``${{inputs.images}}``
    mini_batch_size: files per mini-batch, or bytes of tabular data; None for the default
    partition_keys:  columns whose values each mini-batch has in common; they replace the size
    max_concurrency: worker processes per instance; None: one with GPUs, else one for each core
    error_threshold: failed items after which the step fails; -1: any number is accepted
    mini_batch_error_threshold: the same for failed mini-batches
    max_retries:     how often a failed mini-batch is tried again
    timeout:         seconds for one mini-batch
    append_row_to:   the file for the results, such as ``${{outputs.scores}}``; "" discards them
    """

    entry_script: str
    input_data: str
    mini_batch_size: int | None = None
    partition_keys: tuple[str, ...] = ()
    max_concurrency: int | None = None
    error_threshold: int = -1
    mini_batch_error_threshold: int = -1
    max_retries: int = 2
    timeout: int = 60
    logging_level: str = "INFO"
    append_row_to: str = ""

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the inputs that are divided."""
        return tuple(name.name for name in used_names(self.input_data) if name.kind == "inputs")

    def __str__(self) -> str:
        size = f"of size {self.mini_batch_size}" if self.mini_batch_size else "of the default size"
        by = f"by {', '.join(self.partition_keys)}" if self.partition_keys else size
        return f"{', '.join(self.data)}, {by}; {self.max_concurrency or 'as many as fit'} at once on each instance"
