"""Recognise a full disk, or an exhausted quota, by the message of an error."""

from __future__ import annotations

import errno
import os
import re

NUMBERS = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the system's errors."""

# torch.save to a path does not tell the system's error. Its writer finds that less was written than it passed on, or
# that a write failed: caffe2/serialize/inline_container.cc of PyTorch, seen with 2.13, and in innnky/so-vits-svc#46.
_MESSAGE = re.compile(
    "|".join([*(re.escape(os.strerror(number)) for number in NUMBERS), r"PytorchStreamWriter failed writing"])
    + r"|inline_container\.cc:\d+\] \. unexpected pos \d+ vs \d+"
)


def tells_of_full_disk(message: str) -> bool:
    """Return whether the message of an error, or a line of a log, tells of a full disk."""
    return _MESSAGE.search(message) is not None
