"""``tconv steps``: wrapped, sorted, in plain words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tconv.registry import STEPS
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


def headings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line and not line.startswith(" ")]


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("80", 80), ("300", 100), ("", 100)])
def test_lists_keep_to_the_width(tconv: Tconv, monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    ran = tconv("steps")
    assert (ran.code, ran.err) == (0, "")
    longest = max(map(len, ran.out.splitlines()))
    assert width * 3 / 4 < longest <= width
    assert "``" not in ran.out


def test_steps_tell_parameters_meaning_words_examples_and_the_dtypes(
    tconv: Tconv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = tconv("steps").out
    assert [h.partition("(")[0] for h in headings(out)] == [*sorted(STEPS), "dtypes"]
    resize = out[out.index("\nresize(") : out.index("\n\nscale(")].strip()
    assert resize.splitlines() == [
        "resize(size, method=bilinear, aspect=…, max_size=…)",
        "    Pictures of another size, antialiased, bit for bit as Pillow's Image.resize.",
        "    resize(224) makes the shorter side 224 and keeps the aspect, resize(256x192) is height × width",
        "    exactly.",
        "    method: bilinear, bicubic, lanczos, box, nearest",
        "    aspect: contain, cover",
        "    for example resize(224), resize(256x192, method=bicubic), resize(640, aspect=contain)",
    ]
    assert "float16 (half, fp16, f16); " in " ".join(out.split())
    assert "int4 (i4)" in out
