"""On a GPU as on the CPU: casts bit for bit, arithmetic within a unit in the last place, and no race on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tconv.dtypes import DTYPES, dtype
from tconv.evaluate import evaluate
from tconv.ops import CastTo, MoveTo, Op, Permute
from tests.cli.conftest import Ran, tconv  # noqa: F401  # a fixture
from tests.memory import tensor
from tests.placed.laws import (
    SOURCES,
    any_bits,
    assert_every_cast_on,
    assert_nans_are_the_same_on,
    assert_same_on,
    chains,
)
from tests.placed.test_work import NORMALIZE, SCALE

torch = pytest.importorskip("torch")

DEVICE = "cuda:0"
Tconv = Callable[..., Ran]


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("detail", [False, True])
def test_every_cast(src: str, detail: bool) -> None:
    assert_every_cast_on(DEVICE, src, detail)


@pytest.mark.parametrize("src", ["float16", "bfloat16"])
def test_every_half_to_every_float(src: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[src].numpy)
    for dst in ("float16", "bfloat16", "float32", "float64", "uint8", "int32"):
        assert_same_on(DEVICE, (CastTo(dtype=dtype(dst), on_overflow="saturate", step="c"),), x)


@pytest.mark.parametrize("src", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("perm", [None, (2, 0, 1)])
def test_pictures(src: str, perm: tuple[int, ...] | None) -> None:
    x = (np.random.default_rng(0).random((97, 61, 3)) * 255).astype(src)
    turn: tuple[Op, ...] = () if perm is None else (Permute(perm=perm, step="p"),)
    assert_same_on(DEVICE, (SCALE, NORMALIZE, *turn, CastTo(dtype=dtype("float16"), step="c")), x, ulps=1)


def test_nans_are_the_same() -> None:
    assert_nans_are_the_same_on(DEVICE)


@settings(max_examples=100)
@given(chains, st.sampled_from(SOURCES), st.integers(0, 5))
def test_every_chain(ops: tuple[Op, ...], src: str, seed: int) -> None:
    assert_same_on(DEVICE, ops, any_bits(src, seed=seed), ulps=1)


def test_the_way_there_and_back_of_the_public_bug() -> None:
    """Large, and often: what is read before it has arrived is only now and then the wrong thing."""
    bits = np.random.default_rng(9).integers(0, 2**16, 1 << 26, dtype=np.uint16)
    x = np.where(np.isfinite(bits.view(np.float16)), bits.view(np.float16), 0).astype(np.float16)
    made = tensor(x)
    for op in (
        MoveTo(device=DEVICE),
        CastTo(dtype=dtype("float32")),
        CastTo(dtype=dtype("float16")),
        MoveTo(device="cpu"),
    ):
        made = made.then(op)
    for _ in range(10):
        assert evaluate(made)[0].tobytes() == x.tobytes()


def test_threads_go_their_own_ways(tconv: Tconv, tmp_path: Path) -> None:  # noqa: F811  # the fixture
    rng = np.random.default_rng(0)
    arrays = {f"{n}": rng.normal(size=(512, 300 + n % 3)).astype(np.float32) for n in range(200)}
    np.savez("x.npz", **arrays)  # type: ignore[arg-type]  # arrays by name
    assert tconv("x.npz", "--half", "--device", "cuda", "-j", "8", "--device-batch", "7", "-o", "y.npz").code == 0
    with np.load("y.npz") as made:
        for name, x in arrays.items():
            np.testing.assert_array_equal(made[name], x.astype(np.float16))


def test_a_batch_that_is_too_large_for_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is left is a share of the memory that holds a few tensors, and not all of them."""
    from tconv.placed.batching import Batching
    from tests.placed import test_carry

    _, total = torch.cuda.mem_get_info(0)
    tensors = [tensor(np.full((4, 1 << 20), n, np.float32)).then(MoveTo(device=DEVICE)) for n in range(16)]
    tensors = [t.then(CastTo(dtype=dtype("float16"))) for t in tensors]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, (600 << 20) / total), 0)
    try:
        batching = Batching()
        made: Any = test_carry.makings(tensors)
        from tconv.placed.carry import together

        results = together(made[0], batching)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, 0)
    assert not any(isinstance(one, Exception) for one in results)
    assert [out[0] for out in made[1]] == [*range(16)]
    assert batching.most < 16
    assert batching.notes


def test_the_tag_of_the_device(tconv: Tconv) -> None:  # noqa: F811  # the fixture
    torch.save({"w": torch.ones(3)}, "x.pt")
    assert tconv("x.pt", "--half", "--device", "cuda", "--save-device", "-o", "y.pt").code == 0
    assert torch.load("y.pt")["w"].device == torch.device("cuda:0")


def test_devices_measures_it(tconv: Tconv) -> None:  # noqa: F811  # the fixture
    assert "cuda:0" in tconv("devices").out


@pytest.mark.filterwarnings("ignore:.*TorchVision are deprecated:DeprecationWarning")
@pytest.mark.parametrize("how", [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_blocks": 5}])
def test_jpegs_are_decoded_on_it_and_nearly_exactly(tconv: Tconv, how: dict[str, Any]) -> None:  # noqa: F811  # as above
    pytest.importorskip("torchvision")
    exif = Image.Exif()
    exif[274] = 6
    folder = Path("photos")
    folder.mkdir()
    for n in range(40):  # smooth, so that rounding of the colours is all the difference
        y, x = np.mgrid[: 60 + n % 3, : 90 + n % 5]
        pixels = np.stack([x * 2, y * 3, 127 + n + (x + y) // 3], -1).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.jpg", exif=exif, quality=95, **how)
    Image.fromarray(pixels).save(folder / "rgb.jpg", keep_rgb=True)
    Image.fromarray(pixels).convert("CMYK").save(folder / "inks.jpg")
    ran = tconv("photos", "--device", "cuda", "--gpu-jpeg", "--normalize", "-j", "4", "-o", "x.npz")
    assert ran.code == 0, ran.err
    assert "1 of the JPEGs were decoded exactly" in ran.err  # the one that is stored as RGB
    assert tconv("photos", "--normalize", "-o", "y.npz").code == 0
    with np.load("x.npz") as made, np.load("y.npz") as exact:
        for name in exact:
            assert float(np.abs(made[name] - exact[name]).max()) <= 6 / 255, name
        assert np.array_equal(made["rgb.jpg"], exact["rgb.jpg"])
        assert np.array_equal(made["inks.jpg"], exact["inks.jpg"])


@pytest.mark.filterwarnings("ignore:.*TorchVision are deprecated:DeprecationWarning")
def test_a_jpeg_that_is_not_whole_is_refused_there_too(tconv: Tconv) -> None:  # noqa: F811  # as above
    pytest.importorskip("torchvision")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)).save("x.jpg")
    Path("x.jpg").write_bytes(Path("x.jpg").read_bytes()[:-900] + b"\xff\xd9")
    ran = tconv("x.jpg", "--device", "cuda", "--gpu-jpeg", "-o", "x.npy")
    assert ran.code == 1
    assert "x.jpg: truncated or corrupt" in ran.err
