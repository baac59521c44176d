"""Build the operator that DeepSpeed loads at startup on the CPU: PYTHON environments/deepspeed/build_ops.py

It is built once per interpreter, into torch's cache, in 24 s on 2 cores; the build needs g++, and ninja on the PATH.
Otherwise a script that calls DeepSpeed directly builds it on the ranks of an instance, one after the other.
"""

from allranks.runtime import build_locks

for lock in build_locks.remove_left():
    print(f"removed {lock}, which a killed build had left")
build_locks.await_builds()

from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder  # noqa: E402  (it waits for the lock, too)

ShareMemCommBuilder().load()
