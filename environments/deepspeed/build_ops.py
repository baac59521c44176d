"""Build the operator that DeepSpeed loads at startup on the CPU: PYTHON environments/deepspeed/build_ops.py

It is built once per interpreter, into torch's cache, in 24 s on 2 cores; the build needs g++, and ninja on the PATH.
Otherwise a script that calls DeepSpeed directly builds it on the ranks of an instance, one after the other.
"""

import contextlib
import glob
import os
from pathlib import Path

from allranks.runtime.libraries import await_builds, build_locks


def remove_left() -> list[Path]:
    """Remove the locks that no process of this machine holds open, and return them.

    Ranks must not do so: the instances may share a home folder, and there the user has to decide.
    """
    stale = [lock for lock in build_locks() if not is_held(lock)]
    for lock in stale:
        lock.unlink(missing_ok=True)
    return stale


def is_held(lock: Path) -> bool:
    """Return whether a process has the lock open, as torch.utils.file_baton does until its build ends."""
    path = str(lock.resolve())
    for descriptor in glob.iglob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            if os.readlink(descriptor) == path:
                return True
    return False


def main() -> None:
    for lock in remove_left():
        print(f"removed {lock}, which a killed build had left")
    await_builds()
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder  # it waits for the lock, too

    ShareMemCommBuilder().load()


if __name__ == "__main__":
    main()
