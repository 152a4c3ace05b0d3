"""The README tells the truth: its recipes are run as they stand, in their order and twice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import onnx
import pytest

from tconv.recipes import recipe_files

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
IGNORED = [line for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("examples/")]
KEPT = {"spirals.npz"}


def sessions() -> list[list[tuple[str, str]]]:
    """For each console block its commands, each with what the README says it prints."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    found = []
    for block in blocks:
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        found.append([(part.partition("\n")[0], part.partition("\n")[2]) for part in parts])
    return found


def written(folder: str, names: list[str]) -> set[str]:
    """What earlier runs may have left among the examples."""
    ignored = {n for n in names if any(fnmatch(f"examples/{n}", pattern.rstrip("/")) for pattern in IGNORED)}
    return ignored - KEPT if Path(folder) == ROOT / "examples" else set()


def set_up() -> str:
    """What the line for installing runs when tconv is installed."""
    (command,) = re.findall(r"^    pip install \. && (tconv .*?) *#", README, re.MULTILINE)
    return str(command)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    tool = folder / "bin" / "tconv"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m tconv "$@"\n')
    tool.chmod(0o755)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=written)
    assert run(folder, f"cd .. && {set_up()}") == "examples/photos.safetensors\n"
    return folder


def run(place: Path, command: str) -> str:
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", f"({command}) 2>&1"],
        cwd=place / "examples",
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("session", sessions(), ids=lambda s: s[0][0])
@pytest.mark.parametrize("time", ["first", "second"])
def test_recipes_print_what_the_readme_shows(place: Path, session: list[tuple[str, str]], time: str) -> None:
    for command, shown in session:
        assert run(place, command) == shown


def test_the_python_of_the_readme_prints_what_it_shows(place: Path) -> None:
    pytest.importorskip("torch", reason="the README makes PyTorch's tensors")
    (block,) = re.findall(r"```pycon\n(.*?)```", README, re.DOTALL)
    (place / "python.txt").write_text(block.replace("\\\n", ""), encoding="utf8")
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", place / "python.txt"],
        cwd=place / "examples",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_recipes_leave_nothing_that_git_would_see(place: Path) -> None:
    for session in sessions():
        for command, _ in session:
            run(place, command)
    there = {p.name for p in (place / "examples").iterdir()}
    known = {p.name for p in (ROOT / "examples").iterdir()}
    made = there - (known - written(str(ROOT / "examples"), list(known)))
    assert {"batch.npy", "tiny.float16.pt", "bare.pt", "photos.npz"} <= made
    assert made == written(str(ROOT / "examples"), list(made))


def test_the_make_rule_halves_a_checkpoint(place: Path) -> None:
    shutil.copy(place / "examples" / "tiny.pt", place / "examples" / "made.pt")
    assert "made.float16.pt" in run(place, "make -s made.float16.pt")
    assert (place / "examples" / "made.float16.pt").is_file()
    (place / "examples" / "made.pt").unlink()


def test_another_size_makes_the_batch_anew(place: Path) -> None:
    run(place, "make -s SIZE=16 photos.npy")
    assert np.load(place / "examples" / "photos.npy").shape[1:] == (3, 16, 16)
    assert run(place, "make -s SIZE=16 photos.npy") == ""
    assert run(place, "make -s SIZE=24 photos.npy") == "photos.npy\n"
    assert np.load(place / "examples" / "photos.npy").shape[1:] == (3, 24, 24)


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("./prepare_images.sh photos batches 5", "batches/batch-0002.npy"),
        ("mkdir -p runs && cp tiny.pt runs && ./halve_checkpoints.sh runs", "runs/tiny.float16.pt"),
        ("./check_before_training.sh tiny.pt photos; echo $?", "0"),
    ],
)
def test_the_scripts_do_what_they_say(place: Path, command: str, last: str) -> None:
    assert run(place, command).splitlines()[-1] == last


SHAPES = {
    "clip": (3, 224, 224), "imagenet": (3, 224, 224), "imagenet-eval": (3, 224, 224), "keras-mobilenet": (224, 224, 3),
    "mnist": (1, 28, 28), "tf-image": (224, 224, 3), "tflite-representative": (224, 224, 3),
    "vit-inception": (3, 224, 224),
    "yolo-letterbox": (3, 640, 640),
}  # fmt: skip


def test_every_pipeline_has_a_target_and_a_line(place: Path) -> None:
    names = {path.stem for path in recipe_files()}
    made = run(place, "make -s pipelines 2>/dev/null").split()
    assert {Path(path).name.split(".")[1] for path in made} == names
    scripted = run(place, "./pipelines.sh photos tiny.pt out/lines 2>/dev/null").split()
    assert {Path(path).stem for path in scripted} == names
    assert run(place, "make -s pipelines") == ""  # all is up to date
    for path in made:
        target = place / "examples" / path
        line = place / "examples" / "out" / "lines" / f"{target.name.split('.')[1]}{target.suffix}"
        if target.suffix == ".pt":
            assert target.read_bytes() == line.read_bytes()
            continue
        with np.load(target) as first, np.load(line) as second:
            assert sorted(first) == sorted(second)
            pictures = [name for name in first if not name.endswith(".letterbox")]
            assert sorted(pictures) == sorted(p.name for p in (place / "examples" / "photos").iterdir())
            for name in pictures:
                assert first[name].shape == SHAPES[line.stem]
                assert first[name].dtype == np.float32
                np.testing.assert_array_equal(first[name], second[name])


def test_the_model_is_what_its_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", str(ROOT / "examples" / "make_model.py"), str(tmp_path)], check=True)
    kept, made = (onnx.load(folder / "tiny.onnx") for folder in (ROOT / "examples", tmp_path))
    assert [node.op_type for node in kept.graph.node] == [node.op_type for node in made.graph.node]
    for a, b in zip(kept.graph.initializer, made.graph.initializer, strict=True):
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(a), onnx.numpy_helper.to_array(b))
    assert (ROOT / "examples" / "tiny.onnx").stat().st_size < 30_000


def test_the_spirals_are_what_their_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", str(ROOT / "examples" / "make_spirals.py"), str(tmp_path)], check=True)
    kept, made = np.load(ROOT / "examples" / "spirals.npz"), np.load(tmp_path / "spirals.npz")
    assert kept["label"].tolist() == made["label"].tolist()
    np.testing.assert_allclose(kept["points"], made["points"], rtol=0, atol=1e-12)  # sines differ from system to system
