"""Build the operation that DeepSpeed loads at its start on the CPU: PYTHON environments/deepspeed/build_ops.py

It is built once for an interpreter, in torch's cache, in 24 s on 2 cores; that needs g++, and ninja on the PATH. A
script that calls DeepSpeed by itself builds it otherwise, on every rank of an instance after the other.
"""

from allranks.runtime import build_locks

for lock in build_locks.remove_left():
    print(f"removed {lock}, which a killed build had left")
build_locks.await_builds()

from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder  # noqa: E402  (it waits for the lock, too)

ShareMemCommBuilder().load()
