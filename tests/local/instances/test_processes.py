"""The files of /proc, as Linux wrote them."""

import pytest

from allranks.local.instances.processes import Stat, parse_memory, parse_proportional_memory, parse_stat

STAT = (
    "%d (%s) S 15439 15448 1901 34816 15448 4194304 1532 902 0 0 37 11 502 6 20 0 3 0 226881 16961536 3383"
    " 18446744073709551615 94284172210176 94284175025449 140723403456544 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0"
    " 94284177188400 94284177484056 94284594114560 140723403464035 140723403464100 140723403464100 140723403468774 0\n"
)

STATUS = b"""Name:\tpython3
Umask:\t0022
VmHWM:\t   13532 kB
VmRSS:\t   13532 kB
RssAnon:\t    6876 kB
RssFile:\t    6656 kB
RssShmem:\t     512 kB
VmData:\t    7944 kB
"""

ROLLUP = b"""560479eb3000-7ffe8c0e2000 ---p 00000000 00:00 0                          [rollup]
Rss:               13532 kB
Pss:               11198 kB
Pss_Dirty:          6876 kB
Pss_Anon:           3438 kB
Pss_File:           4322 kB
Pss_Shmem:           256 kB
Shared_Clean:       2424 kB
"""


@pytest.mark.parametrize("name", ["python3", "tmux: server", "(sd-pam)", "a) S 1 1 (b", ") R 1 2 3 4", "", "x\ny"])
def test_a_stat_file_is_read_whatever_the_process_is_called(name: str) -> None:
    assert parse_stat((STAT % (15448, name)).encode()) == Stat(
        parent=15439, session=1901, ticks=37 + 11 + 502 + 6, image=(b"94284172210176", b"140723403456544")
    )


@pytest.mark.parametrize("text", [b"", b"1 (init", b"1 (init) S 0"])
def test_what_is_no_stat_file_is_an_error(text: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_stat(text)


def test_memory_is_what_no_file_backs() -> None:
    assert parse_memory(STATUS) == (6876 + 512) * 1024
    assert parse_proportional_memory(ROLLUP) == (3438 + 256) * 1024


def test_a_process_that_has_ended_has_no_memory() -> None:
    assert parse_memory(b"Name:\tpython3\nState:\tZ (zombie)\nThreads:\t1\n") == 0


def test_a_kernel_without_the_parts_tells_the_resident_memory() -> None:
    lines = [line for line in STATUS.splitlines(keepends=True) if not line.startswith((b"RssAnon", b"RssShmem"))]
    assert parse_memory(b"".join(lines)) == 13532 * 1024
    assert parse_proportional_memory(b"Rss: 13532 kB\nPss: 11198 kB\n") is None
