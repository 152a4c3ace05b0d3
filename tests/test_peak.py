"""The memory that a plan promises is what the values under way take, however large the file and in whatever layout."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tconv import job
from tconv.pipeline import steps_from_text
from tconv.planner import Plan
from tconv.request import Request, Silent

MB = 1 << 20
SIDE = 6000  # a square of float32 has 144 MB
SLACK = 3 * MB  # headers, buffers of a deflate stream, what Python itself takes


def values() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) % 1000


def plain(folder: Path) -> Path:
    np.save(folder / "x.npy", values())
    return folder / "x.npy"


def fortran(folder: Path) -> Path:
    np.save(folder / "x.npy", np.asfortranarray(values()))
    return folder / "x.npy"


def stored(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=values())
    return folder / "x.npz"


def deflated(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.write(plain(folder), "x.npy")
    return folder / "x.npz"


@pytest.mark.slow
@pytest.mark.parametrize("max_memory", [1 << 30, 40 * MB])
@pytest.mark.parametrize(
    ("make", "chain", "most"),
    [
        (plain, ["cast(float16)"], 30 * MB),
        (plain, ["permute(1, 0)"], 200 * MB),
        (plain, ["permute(1, 0)", "cast(float16)"], 160 * MB),
        (fortran, ["cast(float16)"], 160 * MB),
        (stored, ["permute(1, 0)"], 200 * MB),
        (deflated, ["cast(float16)"], 45 * MB),
        (deflated, [], 60 * MB),
    ],
)
def test_the_peak_is_what_the_plan_says(
    tmp_path: Path, make: Callable[[Path], Path], chain: list[str], most: int, max_memory: int
) -> None:
    path = make(tmp_path)
    target = tmp_path / f"out{path.suffix}"
    steps = tuple(steps_from_text(chain))
    request = Request((str(path),), output=str(target), steps=steps, workers=2, max_memory=max_memory, verify=not chain)
    plans: list[Plan] = []
    tracemalloc.start()
    job.convert(request, Silent(), lambda _: None, plans.append)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= plans[0].peak_memory + SLACK
    assert plans[0].peak_memory <= most
    want = values()
    for text in chain:
        want = want.T if text.startswith("permute") else want.astype(np.float16)
    got = np.load(target)
    assert np.array_equal(got if path.suffix == ".npy" else got["x"], want)
