"""How a plan is carried out: passes, decoders, bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv.explain import BY_ITSELF, LOOKED_AT, MOVED, ONE_PASS, Costs, Pass, chains, costs, decoders, passes
from tconv.pipeline import steps_from_text
from tconv.planner import Plan, plan
from tconv.request import Request, Silent


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(*inputs: str, chain: str, output: str, **asked: object) -> Plan:
    return plan(Request(inputs, output, steps=tuple(steps_from_text([chain])), **asked), Silent(), {})  # type: ignore[arg-type]  # by keyword


def passes_of(*inputs: str, chain: str, output: str = "y.npz", **asked: object) -> list[tuple[tuple[str, ...], str]]:
    (tensor,) = planned(*inputs, chain=chain, output=output, **asked).files[0].stream.tensors
    return [(one.steps, one.how) for one in passes(tensor)]


TABLE = "a table of 256 entries"


def test_elementwise_steps_on_bytes_are_one_table() -> None:
    Image.new("RGB", (6, 4)).save("x.png")
    assert passes_of("x.png", chain="scale | cast(half)") == [(("scale", "cast(float16)"), TABLE)]
    assert passes_of("x.png", chain="scale | normalize(imagenet) | permute(CHW)") == [
        (("scale", "normalize(imagenet)", "permute(CHW)"), f"{TABLE} a channel")
    ]


def test_what_needs_a_whole_picture_goes_by_itself() -> None:
    Image.new("RGB", (6, 4)).save("x.png")
    assert passes_of("x.png", chain="scale | resize(3x3) | crop(2) | clamp(0, 1) | permute(CHW)") == [
        (("scale",), TABLE),
        (("resize(3x3)",), BY_ITSELF),
        (("crop(2)",), BY_ITSELF),
        (("clamp(0, 1)", "permute(CHW)"), ONE_PASS),
    ]


def test_other_values_go_through_one_pass_and_moving_is_none() -> None:
    np.save("x.npy", np.zeros((2, 3)))
    assert passes_of("x.npy", chain="clamp(0, 1) | cast(half)") == [(("clamp(0, 1)", "cast(float16)"), ONE_PASS)]
    assert passes_of("x.npy", chain="permute(1, 0)") == [(("permute(1, 0)",), MOVED)]
    assert passes_of("x.npy", chain="cast(float64)") == []
    assert passes_of("x.npy", chain="cast(float64)", range=(0, 1)) == [(("--range",), LOOKED_AT)]


def test_the_parts_of_a_stack_are_made_each_at_its_offset() -> None:
    for n in range(3):
        Image.new("RGB", (6, 4)).save(f"{n}.png")
    joined = (("stack",), "each part at its offset")
    inputs = ("0.png", "1.png", "2.png")
    assert passes_of(*inputs, chain="crop(2) | stack | permute(NCHW)", output="y.npy") == [
        (("crop(2)",), BY_ITSELF), (("permute(NCHW)",), MOVED), joined,
    ]  # fmt: skip
    assert passes_of(*inputs, chain="stack | permute(CNHW)", output="y.npy") == [joined, (("permute(CNHW)",), MOVED)]


def test_ways_are_counted() -> None:
    np.savez("x.npz", a=np.zeros(3), b=np.zeros(3), c=np.zeros(3, np.float16))
    found = planned("x.npz", chain="cast(half)", output="y.npz")
    assert chains(found) == [((Pass(("cast(float16)",), ONE_PASS),), 2), ((), 1)]
    assert decoders(found) == []


def test_bytes_that_are_read_moved_and_written() -> None:
    np.save("x.npy", np.zeros((10, 10)))  # 800 bytes become 200 behind a header of 128
    assert costs(planned("x.npy", chain="cast(half)", output="y.npy")) == Costs(800, 800 + 200, 128 + 200)
    Image.new("RGB", (100, 100)).save("x.png")
    size = Path("x.png").stat().st_size
    found = planned("x.png", chain="resize(50) | scale | cast(half)", output="y.npy")
    made = 30_000 + 7_500 + 15_000  # decoded, resized, cast
    assert costs(found) == Costs(size, made, 128 + 15_000)
    assert decoders(found) == [("Pillow", 1)]
    Image.new("RGB", (100, 100)).save("z.png")
    found = planned("x.png", "z.png", chain="resize(50) | scale | cast(half) | stack", output="y.npy")
    assert costs(found) == Costs(2 * size, 2 * made, 128 + 30_000)
    assert decoders(found) == [("Pillow", 2)]


def test_what_shares_the_bytes_of_another_is_neither_read_nor_moved() -> None:
    torch = pytest.importorskip("torch")
    w = torch.zeros(1000)
    torch.save({"a": w, "b": w}, "x.pt")
    assert costs(planned("x.pt", chain="cast(half)", output="y.pt")).read == 4000


def test_deflated_archives_are_read_as_they_lie_on_the_disk() -> None:
    np.savez_compressed("x.npz", a=np.zeros(10_000))
    found = planned("x.npz", chain="cast(half)", output="y.npz")
    assert costs(found).read == Path("x.npz").stat().st_size < 1000
    assert decoders(found) == [("zlib", 1)]


def test_traces_have_the_specs_after_every_step() -> None:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (6, 4)).save(name)
    Image.fromarray(np.zeros((4, 6), np.uint16)).save("deep.png")
    inputs = ("a.png", "deep.png", "b.png")
    traces = planned(*inputs, chain="scale | resize(2x2) | stack", output="y.npy").files[0].traces
    assert [[(s.name, s.dtype.name, s.shape) for s in trace] for trace in traces] == [
        [
            ("a.png", "uint8", (4, 6, 3)), ("a.png", "float32", (4, 6, 3)), ("a.png", "float32", (2, 2, 3)),
            ("y", "float32", (3, 2, 2, 3)),
        ]
    ]  # fmt: skip
    traces = planned(*inputs, chain="scale", output="y.npz").files[0].traces
    assert [[(s.name, s.dtype.name) for s in trace] for trace in traces] == [
        [("a.png", "uint8"), ("a.png", "float32")],
        [("deep.png", "uint16"), ("deep.png", "float32")],
    ]
