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


def test_intervals() -> None:
    assert values.interval("0,255") == (0.0, 255.0)
    assert values.interval("-1, 1e3") == (-1.0, 1000.0)
    for text in ("", "5", "1,0", "1,1", "0,inf", "nan,1", "0,1,2", "a,b"):
        with pytest.raises(UsageError, match=r"for example --range 0,255"):
            values.interval(text)


def test_axes() -> None:
    assert values.axes("nhwc") == "NHWC"
    for text in ("", "HHW", "H W", "H1", "ẞ"):
        with pytest.raises(UsageError, match="for example HWC, CHW or NHWC"):
            values.axes(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("500MB", 500_000_000), ("2g", 2_000_000_000), ("1GiB", 1 << 30), ("1.5 kB", 1500), ("7", 7), ("0.5MiB", 1 << 19)],
)
def test_sizes(text: str, count: int) -> None:
    assert values.size(text) == count


@pytest.mark.parametrize("text", ["", "lots", "0", "-1", "1XB", "1e9", "9" * 400])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="for example 500MB or 2GB"):
        values.size(text)
