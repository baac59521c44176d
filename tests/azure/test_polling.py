"""When a run is looked at again, and which failures end that."""

import pytest

from allranks.azure.errors import AzureError, NotFoundError, SignInError
from allranks.azure.watch import PATIENCE, POLL, POLL_MAX, SIGN_IN_PATIENCE, UNKNOWN_PATIENCE, Polling
from allranks.errors import InputError, Problem

AWAY = AzureError(Problem("watching", "the service failed (503)"))
EXPIRED = SignInError(Problem("watching", "authentication failed (401)"))
UNKNOWN = NotFoundError(Problem("watching", "not found (404)"))


def test_a_run_that_does_not_change_is_looked_at_less_often() -> None:
    polling = Polling()
    delays = []
    for _ in range(12):
        polling.succeeded(changed=False)
        delays.append(polling.delay)
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (POLL * 1.5, POLL_MAX)
    polling.succeeded(changed=True)
    assert polling.delay == POLL


def test_failures_wait_longer_and_longer() -> None:
    polling = Polling()
    assert [list(polling.failed(AWAY)) for _ in range(2)] == [["the service failed (503)"], []]
    assert polling.delay == POLL * 1.5**2


@pytest.mark.parametrize(
    ("error", "patience"),
    [
        (AWAY, PATIENCE),
        (EXPIRED, SIGN_IN_PATIENCE),
        (SignInError(Problem("watching", "nobody is signed in")), SIGN_IN_PATIENCE),
        (UNKNOWN, UNKNOWN_PATIENCE),
        (InputError(Problem("watching", "access denied (403)")), 0),
    ],
    ids=["away", "expired", "signed out", "unknown", "denied"],
)
def test_patience(error: AzureError | InputError, patience: int) -> None:
    polling = Polling()
    for _ in range(patience):
        list(polling.failed(error))
    with pytest.raises(type(error)):
        list(polling.failed(error))


def test_an_answer_renews_the_patience() -> None:
    polling = Polling()
    for _ in range(3 * PATIENCE):
        list(polling.failed(AWAY))
        polling.succeeded(changed=False)


def test_a_run_that_was_known_and_is_gone_is_not_waited_for() -> None:
    polling = Polling()
    polling.succeeded(changed=True)
    with pytest.raises(NotFoundError):
        list(polling.failed(UNKNOWN))


def test_how_to_go_on_is_told_once() -> None:
    polling = Polling()
    assert list(polling.failed(EXPIRED)) == ["authentication failed (401); sign in again, and watching continues"]
    assert list(polling.failed(EXPIRED)) == []
