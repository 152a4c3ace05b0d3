"""Errors of the API speak of its arguments and of steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tconv
from tconv.api.words import translated


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("exists already; --force replaces it", "exists already; force=True replaces it"),
        ("say --range 0,255 or --range LO,HI", "say range=(0, 255) or range=(LO, HI)"),
        ("--on-overflow saturate clamps, inf", 'on_overflow="saturate" clamps, inf'),
        ("with --input-layout HWC for instance", 'with input_layout="HWC" for instance'),
        ("name them with --input-layout, or", "name them with input_layout=, or"),
        ("--fields '' leaves them", "fields='' leaves them"),
        ("--skip leaves a tensor out", "skip= leaves a tensor out"),
        ("--on-bad skip leaves bad files out", 'on_bad="skip" leaves bad files out'),
        ("--max-pixels 86400", "max_pixels=86400"),
        ("say --format jpeg", 'say format="jpeg"'),
        ("with --format writes each", "with format= writes each"),
        ("--resize HxW or --pad makes", "resize(HxW) or pad makes"),
        ("scale first (--normalize)", "scale first (scale)"),
        ("--half, --bf16, --to float32 and --to DTYPE", "cast(float16), cast(bfloat16), cast(float32) and cast(DTYPE)"),
        ("--step 'scale(uint8)' makes pixels", "scale(uint8) makes pixels"),
        ("without --stack and", "without stack=True and"),
        ("--no-exif leaves them", "exif=False leaves them"),
        ("-o x.pt does, or -o FILE.npz, .pt, or -o DIR/.", 'dst="x.pt" does, or dst="FILE.npz", .pt, or dst="DIR/".'),
        ("-o DIR/ with --format writes", 'dst="DIR/" with format= writes'),
        ("a -- b, --unheard-of, x--force", "a -- b, --unheard-of, x--force"),
    ],
)
def test_options_as_python_writes_them(text: str, python: str) -> None:
    assert translated(text) == python


def test_what_is_refused_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 4), np.float32))
    for size in ((4, 4), (5, 4)):
        Image.new("RGB", size).save(tmp_path / f"{size[0]}.png")
    (tmp_path / "y.npy").touch()
    with pytest.raises(tconv.TconvError, match="force=True replaces it"):
        tconv.convert(tmp_path / "x.npy", tmp_path / "y.npy", "cast(half)")
    with pytest.raises(tconv.TconvError, match=r"say it: range=\(0, 255\)"):
        tconv.plan(tmp_path / "x.npy", tmp_path / "z.npy", "scale")
    with pytest.raises(tconv.TconvError, match=r"resize\(HxW\) or pad makes the sizes equal"):
        tconv.open([tmp_path / "4.png", tmp_path / "5.png"]).pipe("stack")
    with pytest.raises(tconv.TconvError, match="max_pixels=16"):
        tconv.open(tmp_path / "4.png", max_pixels=3)
    with pytest.raises(tconv.TconvError, match='name the axes, with axes="HWC"'):
        tconv.Pipeline("resize(3)")(np.ones((4, 4, 3)))
