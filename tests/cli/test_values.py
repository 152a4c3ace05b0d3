"""Values of options: what they mean, and what is said of wrong ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tconv.cli import values
from tconv.errors import UsageError

PARAM = SimpleNamespace(opts=["-j", "--workers"])


def test_words() -> None:
    check = values.one_of("error", "saturate", "inf")
    assert check(None, PARAM, "inf") == "inf"
    assert check(None, PARAM, None) is None
    with pytest.raises(UsageError, match=r"--workers takes error, saturate or inf, not 'clip'$"):
        check(None, PARAM, "clip")
    with pytest.raises(UsageError, match=r"did you mean saturate\?"):
        check(None, PARAM, "satrate")


def test_whole_numbers() -> None:
    check = values.whole(1, 256)
    assert check(None, PARAM, "12") == 12
    assert check(None, PARAM, None) is None
    for text in ("0", "257", "x", "", "-1", "1.5", "1e2", "9" * 5000, "٣"):
        with pytest.raises(UsageError, match=r"--workers takes a whole number from 1 to 256, not "):
            check(None, PARAM, text)
