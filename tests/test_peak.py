"""The memory that a plan promises is what the values under way take, however large the file and in whatever layout."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv import job
from tconv.pipeline import steps_from_text
from tconv.planner import Plan, plan
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


def test_an_image_takes_no_more_than_a_kilobyte_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of the folder would count, too
    Image.new("RGB", (9, 7)).save("seed.jpg")
    data = Path("seed.jpg").read_bytes()
    peaks, sizes = [], (50, 2000, 4000)  # the first imports what is needed
    for size in sizes:
        folder = Path(str(size))
        folder.mkdir()
        for n in range(size):
            (folder / f"{n:06}.jpg").write_bytes(data)
        steps = tuple(steps_from_text(["resize(8x8)", "scale", "normalize(imagenet)", "permute(CHW)"]))
        tracemalloc.start()
        made = plan(Request((str(folder),), output="out.npy", steps=steps), Silent(), {})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert made.files[0].stream.tensors[0].spec.shape == (size, 3, 8, 8)
    assert (peaks[2] - peaks[1]) / (sizes[2] - sizes[1]) < 1024
