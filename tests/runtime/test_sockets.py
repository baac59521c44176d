"""Ranks without torch: real processes, which sockets connect."""

import json
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allranks.contract import report
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.runtime.sockets import rendezvous

Start = Callable[..., Any]
SCRIPT = "without_torch.py"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("distribution", "instance_count"), [(None, 1), (PyTorch(1), 3), (Mpi(2), 1)], ids=str)
def test_collectives(start: Start, distribution: Any, instance_count: int) -> None:
    # The variables of a launch on several addresses of the loopback, of which one listens at all.
    ended = start(SCRIPT, "collectives", distribution=distribution, instance_count=instance_count).wait()
    assert [rank.code for rank in ended] == [0] * len(ended), ended
    assert [rank.stdout.strip() for rank in ended] == [
        f"rank {rank} of {len(ended)}, torch False" for rank in range(len(ended))
    ]
    assert [len(rank.of(report.Progress)) for rank in ended] == [1, *[0] * (len(ended) - 1)]
    assert all(rank.of(report.Finished) for rank in ended)


@pytest.mark.parametrize(("what", "codes"), [("fails", {0: 1, 1: 2, 2: 1}), ("dies", {0: 1, 1: 1, 2: -signal.SIGKILL})])
def test_a_rank_that_ends_early_ends_the_others(start: Start, what: str, codes: dict[int, int]) -> None:
    ended = start(SCRIPT, what, distribution=PyTorch(3)).wait()
    assert {rank.rank: rank.code for rank in ended} == codes
    culprit = 1 if what == "fails" else 2
    assert f"rank {culprit} has ended" in ended[0].of(report.Failure)[0].message


@pytest.mark.parametrize(("what", "code"), [("late", 0), ("evicted", 143)])
def test_a_rank_that_finishes_first_is_not_lost(start: Start, what: str, code: int) -> None:
    ended = start(SCRIPT, what, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in ended] == [code] * 3, ended
    assert [rank.of(report.Failure) for rank in ended] == [[], [], []]


def test_a_missing_rank_is_named_and_a_stranger_is_ignored(start: Start, free_port: int) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "3"}
    alone |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port)}
    started = start(SCRIPT, "collectives", "4", variables=alone)
    greetings = [b"GET / HTTP/1.1\r\n\r\n", message({"rank": 1, "world_size": 2, "job": ""})]
    for greeting in greetings:
        with connected(free_port) as stranger:
            stranger.sendall(greeting)
    with connected(free_port) as rank:
        rank.sendall(message({"rank": 2, "world_size": 3, "job": ""}))
        (ended,) = started.wait()
    assert ended.code == 1
    assert "instance 0, rank 1 did not connect within 4 s" in ended.stderr


def test_an_array_is_never_a_pickle() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert np.array_equal(rendezvous.decode_array(rendezvous.encode_array(array)), array)
    with pytest.raises(ValueError, match="allow_pickle"):
        rendezvous.encode_array(np.array([object()]))


def message(value: object) -> bytes:
    payload = json.dumps(value).encode()
    return struct.pack("!Q", len(payload)) + payload


def connected(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
