"""What the texts of options mean, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from tconv import values
from tconv.errors import UsageError


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
