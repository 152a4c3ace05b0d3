"""Formats and steps of other packages: the example as it would be installed, name clashes, and broken packages."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.installed import install, install_from

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "plugin"


class Site:
    """A folder with packages, and a place to run tconv in with them."""

    def __init__(self, folder: Path) -> None:
        self.site, self.work = folder / "site", folder / "work"
        self.site.mkdir()
        self.work.mkdir()

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        path = os.pathsep.join([str(self.site), str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-B", "-m", "tconv", *words],
            cwd=self.work,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def example(site: Site) -> Site:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == ("tconv-example", "1.0")
    install_from(EXAMPLE / "tconv_example", site.site, project["entry-points"])
    return site


def flow(path: Path, values: Any) -> None:
    height, width, _ = values.shape
    path.write_bytes(b"PIEH" + struct.pack("<ii", width, height) + values.astype("<f4").tobytes())


def test_the_example_reads_and_writes_its_format(example: Site) -> None:
    values = np.random.default_rng(0).normal(size=(5, 7, 2)).astype(np.float32)
    flow(example.work / "a.flo", values)
    assert example.run("a.flo", "-o", "b.npy")[0] == "b.npy\n"
    np.testing.assert_array_equal(np.load(example.work / "b.npy"), values)
    assert example.run("b.npy", "-o", "c.flo")[0] == "c.flo\n"
    assert (example.work / "c.flo").read_bytes() == (example.work / "a.flo").read_bytes()
    assert example.run("b.npy", "--format", "flo", "-o", "out/")[0] == "out/\n"
    (example.work / "a.flo").rename(example.work / "a.of")
    assert "Middlebury optical flow" in example.run("inspect", "a.of")[0]  # by its content
    flow(example.work / "folder.flo", values)
    assert "float32  5x7x2" in example.run("inspect", ".")[0]


def test_what_the_example_refuses(example: Site) -> None:
    (example.work / "a.flo").write_bytes(b"PIEH" + struct.pack("<ii", 9, 9))
    assert "a.flo: truncated" in example.run("a.flo", "-o", "b.npy", code=1)[1]
    np.save(example.work / "x.npy", np.zeros((3, 3), np.float32))
    assert (
        "a .flo file holds one flow of shape (height, width, 2), not (3, 3)"
        in (example.run("x.npy", "-o", "y.flo", code=1)[1])
    )
    assert not (example.work / "y.flo").exists()


def test_the_step_of_the_example_is_fused_like_those_of_tconv(example: Site) -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(pixels).save(example.work / "x.png")
    chain = "scale | gamma(2.2)"
    example.run("x.png", "--step", chain, "--channels", "gray", "-o", "y.npy")
    want = ((pixels / 255.0) ** (1 / 2.2)).astype(np.float32)
    np.testing.assert_array_equal(np.load(example.work / "y.npy")[..., 0], want)
    assert "[scale + gamma(2.2): a table of 256 entries]" in example.run("plan", "x.png", "--step", chain)[0]
    assert "g is -1.0; it must be above 0" in example.run("x.png", "--step", "gamma(-1)", code=2)[1]
    assert "scale first" in example.run("x.png", "--step", "gamma(2)", code=1)[1]
    assert "did you mean gamma?" in example.run("x.png", "--step", "gama(2)", code=2)[1]


def test_pipeline_files_and_their_schema_know_the_step(example: Site) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    Image.new("RGB", (4, 4), (9, 99, 199)).save(example.work / "x.png")
    text = example.run("x.png", "--step", "scale | gamma(2)", "--print", "yaml")[0]
    assert text == "version: 1\nsteps:\n  - scale\n  - gamma: 2.0\n"
    (example.work / "p.yaml").write_text(text)
    assert example.run("x.png", "--pipeline", "p.yaml", "-o", "y.npy")[0] == "y.npy\n"
    schema = json.loads(example.run("schema")[0])
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({"version": 1, "steps": ["scale", {"gamma": 2.2}]})
    assert not valid({"version": 1, "steps": [{"gamma": {"gg": 2.2}}]})


def test_the_lists_say_whose_they_are(example: Site) -> None:
    formats = example.run("formats")[0].splitlines()
    (line,) = [line for line in formats if line.startswith("flo ")]
    assert " ".join(line.split()) == "flo Middlebury optical flow read write .flo from tconv-example 1.0"
    assert sum("from" in line for line in formats) == 1
    steps = example.run("steps")[0]
    entry = steps[steps.index("gamma(g)") :].partition("\n\n")[0].splitlines()
    assert [entry[0], *(line.strip() for line in entry[-2:])] == [
        "gamma(g)", "for example gamma(2.2)", "from tconv-example 1.0",
    ]  # fmt: skip


STEP = """
from dataclasses import dataclass
from tconv.step import Step
@dataclass(frozen=True)
class Mine(Step):
    name = {name!r}
    def apply(self, stream): {body}
    def __str__(self): return self.name
"""


@pytest.mark.parametrize(
    ("points", "module", "reason"),
    [
        ({"blur": "bad:Mine"}, "import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ({"blur": "bad:Mine"}, "raise RuntimeError('so\\nthere')", "RuntimeError: so"),
        ({"blur": "bad:Mine"}, "", "AttributeError: module 'bad' has no attribute 'Mine'"),
        ({"blur": "bad:Mine"}, "Mine = 3", "bad:Mine is no tconv.step.Step"),
        ({"blur": "bad:Mine"}, STEP.format(name="blr", body="return stream"), "bad:Mine is called 'blr' in itself"),
    ],
)
def test_a_broken_step_is_named_and_breaks_nothing_else(
    site: Site, points: dict[str, str], module: str, reason: str
) -> None:
    install(site.site, "bad-package", {"tconv.steps": points}, {"bad": module})
    np.save(site.work / "x.npy", np.ones(3))
    told = (
        f"tconv: the step 'blur' of the package bad-package 1.0 cannot be used: {reason}; "
        "mend that package, or uninstall it\n"
    )
    out, err = site.run("steps")
    assert err == told
    assert "cast(" in out
    assert "blur" not in out
    assert site.run("x.npy", "--step", "blur", "-o", "y.npy", code=1)[1] == told
    assert site.run("x.npy", "--half") == ("x.float16.npy\n", "")
    assert "blur" not in site.run("schema")[0]


def test_names_of_tconv_are_not_to_be_had(site: Site) -> None:
    install(
        site.site, "thief", {"tconv.steps": {"cast": "thief:Mine"}, "tconv.formats": {"npy": "thief:ROW"}},
        {"thief": "raise SystemError('it must not be imported')"},
    )  # fmt: skip
    np.save(site.work / "x.npy", np.ones(3))
    assert site.run("x.npy", "--step", "cast(half)", "-o", "y.npy") == ("y.npy\n", "")
    assert np.load(site.work / "y.npy").dtype == np.float16
    said = "of the package thief 1.0 cannot be used: tconv has a {} of that name itself"
    assert f"the step 'cast' {said.format('step')}" in site.run("steps")[1]
    assert f"the format 'npy' {said.format('format')}" in site.run("formats")[1]


def test_two_packages_with_one_name(site: Site) -> None:
    for name in ("one", "two"):
        install(
            site.site, name, {"tconv.steps": {"blur": f"{name}:Mine"}},
            {name: STEP.format(name="blur", body="return stream")},
        )  # fmt: skip
    np.save(site.work / "x.npy", np.ones(3))
    err = site.run("x.npy", "--step", "blur", "-o", "y.npy", code=1)[1]
    assert "the step 'blur' of the package one 1.0 cannot be used: another package has a step of that name too" in err
    assert site.run("steps")[1].count("another package has a step of that name too") == 2


ROW = "from tconv.registry import Format\nROW = Format({})"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("'abc', 'A', 'array', ('.npy',), 'm:r'", "the suffix .npy is that of tconv's npy"),
        ("'abc', 'A', 'array', ('abc',), 'm:r'", "its suffixes are not written as ('.abc', …), in small letters"),
        ("'abc', 'A', 'arrays', ('.abc',), 'm:r'", "its group 'arrays' is none of image, array, weights"),
    ],
)
def test_a_format_must_be_one(site: Site, row: str, reason: str) -> None:
    install(site.site, "bad", {"tconv.formats": {"abc": "bad:ROW"}}, {"bad": ROW.format(row)})
    (site.work / "x.abc").write_bytes(b"\1\2\3")
    told = f"the format 'abc' of the package bad 1.0 cannot be used: {reason}"
    out, err = site.run("formats")
    assert told in err
    assert "safetensors" in out
    assert "abc" not in out
    assert told in site.run("x.abc", "-o", "y.npy", code=1)[1]  # perhaps it would have been its own
    np.save(site.work / "x.npy", np.ones(3))
    assert told in site.run("x.npy", "--format", "abc", "-o", "y/", code=2)[1]
    assert site.run("x.npy", "-o", "y.npz") == ("y.npz\n", "")


def test_an_error_in_the_code_of_a_package_is_laid_at_its_door(site: Site) -> None:
    install(site.site, "rash", {"tconv.steps": {"blur": "rash:Mine"}}, {"rash": STEP.format(name="blur", body="1 / 0")})
    np.save(site.work / "x.npy", np.ones(3))
    err = site.run("x.npy", "--step", "blur", "-o", "y.npy", code=1)[1]
    assert err == "tconv: the package rash 1.0 failed: ZeroDivisionError: division by zero (--debug shows where)\n"
    assert not (site.work / "y.npy").exists()


def test_nobody_looks_for_packages_who_needs_none(site: Site) -> None:
    install(site.site, "other", {"tconv.steps": {"blur": "other:Mine"}}, {"other": "raise SystemError"})
    np.save(site.work / "x.npy", np.ones(3))
    code = (
        "import sys; from tconv.cli.app import run; "
        "assert run(['x.npy', '--half', '-f']) == 0; assert run(['--help']) == 0; "
        "assert 'importlib.metadata' not in sys.modules, 'it was'"
    )
    path = os.pathsep.join([str(site.site), str(ROOT)])
    subprocess.run([sys.executable, "-c", code], cwd=site.work, env={**os.environ, "PYTHONPATH": path}, check=True)
