"""doctor: the tables, the JSON that its help promises, the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.fixture(autouse=True)
def images(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    (tmp_path / "d").mkdir()
    turned = Image.Exif()
    turned[0x0112] = 3
    Image.fromarray(pixels).save(tmp_path / "d/a.png")
    Image.fromarray(pixels[:, :20]).save(tmp_path / "d/b.png", exif=turned)
    Image.fromarray(pixels[..., 0]).save(tmp_path / "d/c.jpg", "PNG")


def test_the_table(tconv: Tconv) -> None:
    ran = tconv("doctor", "d")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1:] == [
        "2 sizes (height x width) from 20x20 to 20x30, the median is 20x30",
        "",
        "finding        files  by default                   otherwise                         for example",
        "wrong suffix       1  read as what they are        rename them                       d/c.jpg (is PNG)",
        "EXIF-rotated       1  turned upright               --no-exif leaves them             d/b.png (orientation 3)",
        "grey               1  become RGB, R = G = B        --channels gray, --channels keep  d/c.jpg",
        "unequal sizes      1  each as it is; no one array  --resize HxW makes them equal     d/b.png (20x20)",
    ]


def test_what_cannot_be_converted_is_exit_1_and_listed(tconv: Tconv) -> None:
    Path("d/e.png").write_bytes(Path("d/a.png").read_bytes()[:90])
    Path("d/notes.txt").write_text("x")
    ran = tconv("doctor", "d")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert "not convertible      1  refused                      --on-bad skip leaves them out     d/e.png" in lines
    at = lines.index("not convertible:")
    assert lines[at + 1].startswith("  d/e.png: truncated or corrupt: ")
    assert lines[-1] == "ignored: d/notes.txt"
    assert tconv("doctor", "d", "-q") == Ran(1, "", "")
    assert tconv("d", "-o", "x.safetensors").code == 1


def test_each_file_with_what_is_odd_about_it(tconv: Tconv) -> None:
    ran = tconv("doctor", "d", "-v")
    assert ran.out.splitlines()[-3:] == [
        "",
        "d/b.png: EXIF-rotated (orientation 3), unequal sizes (20x20)",
        "d/c.jpg: wrong suffix (is PNG), grey",
    ]


def test_nothing_odd(tconv: Tconv) -> None:
    ran = tconv("doctor", "d/a.png")
    assert ran.out.splitlines()[1:] == ["1 size (height x width): 20x30", "nothing odd"]
    assert (ran.code, ran.err) == (0, "")


def test_an_image_that_its_name_hides(tconv: Tconv) -> None:
    Path("d/a.png").rename("d/a.img")
    assert tconv("doctor", "d").out.splitlines()[-1] == "ignored for its name: d/a.img is PNG by its content"


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    Path("d/e.png").write_bytes(b"")
    Path("d/notes.txt").write_text("x")
    ran = tconv("doctor", "d", "--json", "--quick")
    found = json.loads(ran.out)
    assert ran.code == 1
    findings = found.pop("findings")
    assert found == {
        "convertible": False,
        "images": 3,
        "bytes": sum(Path("d", name).stat().st_size for name in ("a.png", "b.png", "c.jpg")),
        "formats": {"PNG": 3},
        "pixels": False,
        "sizes": {"distinct": 2, "smallest": [20, 20], "median": [20, 30], "largest": [20, 30]},
        "problems": [{"file": "d/e.png", "reason": "the file is empty (0 bytes)", "remedy": "fetch or write it again"}],
        "ignored": [{"file": "d/notes.txt", "format": None}],
    }
    assert [f["key"] for f in findings] == ["refused", "suffix", "exif", "grey", "sizes"]
    assert findings[2] == {
        "key": "exif",
        "title": "EXIF-rotated",
        "does": "turned upright",
        "option": "--no-exif leaves them",
        "files": [{"file": "d/b.png", "detail": "orientation 3"}],
    }


def test_trouble_is_exit_2(tconv: Tconv) -> None:
    np.save("x.npy", np.zeros(3))
    ran = tconv("doctor", "x.npy")
    assert (ran.code, ran.out) == (2, "")
    assert "tconv inspect --values and tconv check --finite" in ran.err
    ran = tconv("doctor", "d", "x.npy")
    assert ran.code == 0
    assert ran.err == "x.npy: is no image; tconv inspect and tconv check are for it\n"
    assert tconv("doctor", "nowhere").code == 2
    assert tconv("doctor").code == 2


def test_names_of_any_bytes_are_printed_safely(tconv: Tconv) -> None:
    Path("d/a.png").rename("d/\x1b[31m.png")
    Path("d/\x1b[31m.png").write_bytes(b"")
    ran = tconv("doctor", "d")
    assert ran.code == 1
    assert "\x1b" not in ran.out
