"""An error that nothing expects is shown with its traceback, and without secrets."""

import pytest

from allranks.cli import main

TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"


@pytest.mark.parametrize("error", [RuntimeError, OSError])
def test_a_traceback_has_no_secret(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error(f"cannot log in with {TOKEN} to https://me:hunter2@host")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as ended:
        main.main()
    shown = capfd.readouterr().err
    assert ended.value.code == 1
    assert shown.startswith("Traceback (most recent call last):\n")
    assert shown.endswith("cannot log in with *** to https://***@host\n")
