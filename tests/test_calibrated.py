"""Ranges over a data set: those of NumPy over all of it at once, and of the quantize step; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from tconv.calibrated import Calibrated, calibrate
from tconv.errors import TconvError, UsageError
from tconv.pipeline import steps_from_text
from tconv.pooled import Sample
from tconv.request import Request, Silent
from tests.cli.conftest import tconv

__all__ = ["tconv"]

CHAIN = "scale | normalize(imagenet) | permute(CHW)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven pictures of unequal sizes in d/."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    for n in range(7):
        pixels = np.random.default_rng(n).integers(0, 100 + 20 * n, (5 + n, 6, 3), np.uint8)
        Image.fromarray(pixels).save(f"d/{n}.png")


def found(text: str, method: str, chain: str = CHAIN, sample: Sample | None = None, **more: Any) -> Calibrated:
    request = Request(("d",), steps=tuple(steps_from_text([chain])), **more)
    return calibrate(request, text, method, Silent(), sample)


def every() -> dict[str, Any]:
    """What the chain makes of each, by NumPy in float64."""
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return {p.name: (np.asarray(Image.open(p)) / 255 - mean) / std for p in sorted(Path("d").iterdir())}


def test_minmax_is_that_of_all_files(folder: None) -> None:
    made = found("int8", "minmax")
    x = np.concatenate([one.reshape(-1, 3) for one in every().values()])
    (whole,), each = made.entries(made.whole), made.entries(made.each)  # type: ignore[arg-type]  # there is one
    assert (whole["min"], whole["max"]) == (pytest.approx(x.min(), rel=1e-6), pytest.approx(x.max(), rel=1e-6))
    assert whole["scale"] == pytest.approx(np.abs(x).max() / 127, rel=1e-6)
    assert whole["zero_point"] == 0
    for entry, channel in zip(each, x.T, strict=True):
        assert entry["min"] == pytest.approx(channel.min(), rel=1e-6)
        assert entry["high"] == -entry["low"] == pytest.approx(np.abs(channel).max(), rel=1e-6)
        assert entry["scale"] == pytest.approx(np.abs(channel).max() / 127, rel=1e-6)
    assert (made.letters, made.files, made.of) == ("RGB", 7, 7)


@pytest.mark.parametrize("percentile", [99.9, 90.0])
def test_percentiles_are_those_of_all_values(percentile: float) -> None:
    made = found(f"uint8, percentile={percentile}", "percentile")
    x = np.concatenate([one.reshape(-1, 3) for one in every().values()])
    tail = (100 - percentile) / 2
    low, high = np.percentile(x, [tail, 100 - tail])
    (whole,) = made.entries(made.whole)
    assert (whole["low"], whole["high"]) == (pytest.approx(low, rel=1e-5), pytest.approx(high, rel=1e-5))
    assert whole["scale"] == pytest.approx((high - low) / 255, rel=1e-5)
    assert whole["zero_point"] == round(-low / ((high - low) / 255))
    assert made.each is not None
    lows = np.percentile(x, tail, axis=0)
    np.testing.assert_allclose(made.each.low, lows, rtol=1e-5)


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse", "entropy"])
@pytest.mark.parametrize("text", ["int8", "uint8", "int8, scheme=affine"])
def test_it_is_what_quantize_takes(tconv: Any, method: str, text: str) -> None:
    argv = ("d", "--step", f"{CHAIN} | quantize({text}, calibrate={method})", "-o", "q.safetensors")
    assert tconv(*argv).code == 0
    there = load_file("q.safetensors")
    made = found(text, method)
    (whole,) = made.entries(made.whole)
    assert whole["scale"] == there["0.png.scale"].item()
    if "0.png.zero_point" in there:
        assert whole["zero_point"] == there["0.png.zero_point"].item()


def test_a_sample_is_drawn_as_for_mean_and_std() -> None:
    made = found("int8", "minmax", sample=Sample(3, 5))
    again = found("int8", "minmax", sample=Sample(3, 5))
    assert (made.files, made.of) == (3, 7)
    assert made.as_json() == again.as_json()
    assert made.as_json()["sample"] == {"of": 7, "seed": 5}


def test_ranges_hold_0(tmp_path: Path) -> None:
    np.save("x.npy", np.array([2.0, 5], np.float32))
    np.save("y.npy", np.array([-2.0, -5], np.float32))
    for name, text, ends in (("x", "uint8", (0, 5)), ("y", "uint8", (-5, 0)), ("x", "int8", (-5, 5))):
        request = Request((f"{name}.npy",), steps=tuple(steps_from_text(["cast(float32)"])))
        made = calibrate(request, text, "minmax", Silent(), None)
        (entry,) = made.entries(made.whole)
        assert (entry["low"], entry["high"]) == ends


def test_few_samples_are_told_as_many_as_there_are(tmp_path: Path) -> None:
    assert found("int8", "minmax").notes == (
        "calibrated on 7 samples: ranges may be those of chance; 100 to 500 are usual",
    )
    for count, notes in ((99, 1), (100, 0)):
        np.save("x.npy", np.zeros((count, 2, 2, 3), np.float32))
        request = Request(("x.npy",), steps=tuple(steps_from_text(["cast(float32)"])), input_layout="NHWC")
        assert len(calibrate(request, "int8", "minmax", Silent(), None).notes) == notes


def test_labels_have_no_range(tconv: Any) -> None:
    for n in range(7):
        Path("d", "ab"[n % 2]).mkdir(exist_ok=True)
        Path(f"d/{n}.png").rename(f"d/{'ab'[n % 2]}/{n}.png")
    assert tconv("d", "--normalize", "--resize", "4x4", "--stack", "-o", "x.npz").code == 0
    made = calibrate(
        Request(("x.npz",), steps=tuple(steps_from_text(["cast(float32)"]))), "int8", "minmax", Silent(), None
    )
    assert made.entries(made.whole)[0]["max"] <= 1


def test_arrays_without_axes_have_one_range(tmp_path: Path) -> None:
    np.save("x.npy", np.array([[-1, 2], [3, -4]], np.float32))
    made = calibrate(
        Request(("x.npy",), steps=tuple(steps_from_text(["cast(float32)"]))), "int8", "minmax", Silent(), None
    )
    assert made.as_json()["per_channel"] is None
    assert made.as_json()["per_tensor"] == {
        "min": -4, "max": 3, "low": -4, "high": 4, "scale": float(np.float32(4 / 127)), "zero_point": 0,
    }  # fmt: skip


def test_bad_files_stop_it_or_are_left_out() -> None:
    broken = bytearray(Path("d/3.png").read_bytes())
    broken[-20] ^= 255
    Path("d/3.png").write_bytes(broken)
    with pytest.raises(TconvError, match=r"d/3\.png"):
        found("int8", "entropy")
    made = found("int8", "entropy", on_bad="skip")
    assert made.files == 6
    assert [Path(p.file).name for p in made.skipped] == ["3.png"]


def test_what_is_not_finite_is_refused_by_name() -> None:
    np.save("x.npy", np.array([[np.nan, 1]], np.float32))
    with pytest.raises(TconvError, match=r"x\.npy: .*1 NaN of 2 values"):
        calibrate(
            Request(("x.npy",), steps=tuple(steps_from_text(["cast(float32)"]))), "int8", "minmax", Silent(), None
        )


def test_a_cast_that_loses_is_refused() -> None:
    np.save("x.npy", np.array([[1e6, 1]], np.float32))
    with pytest.raises(TconvError, match=r"cast\(float16\): 1 of 2 values overflow"):
        calibrate(
            Request(("x.npy",), steps=tuple(steps_from_text(["cast(float16)"]))), "int8", "minmax", Silent(), None
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int8, axis=0", "with no axis"),
        ("int4, group=4", "with no axis, group"),
        ("int8, min_sqnr=3", "min_sqnr"),
        ("int32", "no quantization to int32"),
        ("int8, calibrate=mse", "each parameter once"),
    ],
)
def test_what_cannot_be_asked_for(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        found(text, "minmax")


def test_integers_and_quantized_chains_have_no_ranges() -> None:
    with pytest.raises(TconvError, match=r"0\.png: .*uint8 values are not quantized; take a pipeline that scales"):
        found("int8", "minmax", "resize(8x8)")
    with pytest.raises(UsageError, match=r"quantize\(int8\): ranges are looked for before"):
        found("int8", "minmax", "scale | quantize(int8)")


def test_what_has_no_range_is_left_out_by_an_option_that_stats_has(tconv: Any) -> None:
    """--keep is for quantizing: stats would not know it."""
    np.savez("a.npz", x=np.ones((2, 3), np.float32), y=np.array([np.nan], np.float32), n=np.arange(3))
    np.save("none.npy", np.zeros((0, 3), np.float32))
    ran = tconv("stats", "a.npz", "--calibrate", "mse", "--skip", "n")
    assert ran.code == 1
    assert ran.err.endswith("replace them first, or leave it out (--skip)\n")
    ran = tconv("stats", "a.npz", "--calibrate", "mse", "--skip", "y")
    assert ran.code == 1
    assert ran.err.endswith(" or leave it out (--skip)\n")
    ran = tconv("stats", "a.npz", "--calibrate", "minmax", "--skip", "[yn]", "--json")
    assert json.loads(ran.out)["per_tensor"]["max"] == 1.0
    ran = tconv("stats", "none.npy", "--calibrate", "minmax")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no value of which there could be a range" in ran.err
