"""Checkpoints in TensorFlow's format, from which a training resumes with any number of workers."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from allranks.runtime.output_room import full_output_refused
from allranks_steps.history import History
from allranks_steps.messages import bad_input, first_line

HISTORY = "history.json"


class Checkpoints:
    """The checkpoints of a training in one folder.

    folder:  the output
    history: saved and restored with the model
    keep:    number of checkpoints to keep, the newest ones
    is_main: whether this process writes to the folder
    alone:   whether only the main process writes. Otherwise saving is a collective, and the others write to temporary
             folders (TensorFlow's "Multi-worker training with Keras")
    """

    def __init__(
        self,
        folder: Path,
        model: Any,
        optimizer: Any,
        history: History,
        *,
        keep: int,
        is_main: bool,
        alone: bool = False,
    ) -> None:
        self._folder, self._history, self._is_main, self._alone = folder, history, is_main, alone
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=self._step)
        self._own = folder if is_main else Path(tempfile.mkdtemp(prefix="allranks-checkpoints-"))
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(self._own), max_to_keep=keep or None)

    def load(self, start_from: Path | None) -> int:
        """Load the newest checkpoint of the folder; without any, of `start_from`. Return its step, 0 if there is none.

        Raise InputError if `start_from` has none, or if it is of another model.
        """
        newest, folder = tf.train.latest_checkpoint(str(self._folder)), self._folder
        if newest is None and start_from is not None:
            newest, folder = tf.train.latest_checkpoint(str(start_from)), start_from
            if newest is None:
                found, expected = f"{start_from} holds no checkpoint", "the output `checkpoints` of train_tensorflow"
                raise bad_input("input resume_from_checkpoint", found, expected)
        if newest is None:
            return 0
        try:
            self._checkpoint.restore(newest).assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            where = "input resume_from_checkpoint" if folder == start_from else "output checkpoints"
            fix = "give the preset, the images and the precision that it was made with"
            raise bad_input(where, f"{newest} does not fit: {first_line(error)}", "the same model", fix) from None
        step = int(self._step)
        if (folder / HISTORY).exists():
            state = json.loads((folder / HISTORY).read_text(encoding="utf-8"))
            # It is written before the checkpoint.
            state["points"] = [point for point in state["points"] if point["step"] <= step]
            self._history.load_state_dict(state)
        return step

    def save(self, step: int) -> None:
        """Save. Every worker must call it. Raise InputError if the disk is full."""
        if self._alone and not self._is_main:
            return
        with self._history.paused(), full_output_refused("output checkpoints", self._own):
            self._step.assign(step)
            if self._is_main:
                self._folder.mkdir(parents=True, exist_ok=True)
                partial = self._folder / f".{HISTORY}.partial"
                partial.write_text(json.dumps(self._history.state_dict()), encoding="utf-8")
                os.replace(partial, self._folder / HISTORY)
            self._manager.save(checkpoint_number=step)

    def close(self) -> None:
        """Remove this process's temporary files."""
        if not self._is_main:
            shutil.rmtree(self._own, ignore_errors=True)
