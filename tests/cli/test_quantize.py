"""Quantization through the whole command line: containers, shards, batches, options, files of whatever is hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as torch_load_file

from tests.cli.conftest import Ran
from tests.quant.onnx_linear import linear

Tconv = Callable[..., Ran]


def random(*shape: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def model(tconv: Tconv) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """w.safetensors, in the folder of the test."""
    made = {"conv.weight": random(4, 3, 3, 3), "fc.weight": random(6, 64), "fc.bias": random(6)}
    save_file(made, "w.safetensors")
    return made


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("format_", ["safetensors", "npz"])
def test_values_are_those_of_onnxruntime(
    tconv: Tconv, model: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]], name: str, format_: str
) -> None:
    assert tconv("w.safetensors", "--quantize", name, "-o", f"q.{format_}").code == 0
    made = load_file("q.safetensors") if format_ == "safetensors" else dict(np.load("q.npz"))
    assert tconv(f"q.{format_}", "--step", "dequantize", "-o", "back.safetensors").code == 0
    back = load_file("back.safetensors")
    assert back.keys() == model.keys()
    for tensor in ("conv.weight", "fc.weight"):
        zero = made.get(f"{tensor}.zero_point")
        numbers, values = linear(model[tensor], made[f"{tensor}.scale"], zero, name, 0)
        np.testing.assert_array_equal(made[tensor].astype(np.float32), numbers)
        np.testing.assert_array_equal(back[tensor], values)
    np.testing.assert_array_equal(back["fc.bias"], model["fc.bias"])


@pytest.mark.parametrize("name", ["int4", "uint4", "nf4", "float8_e4m3fn", "float4_e2m1fn", "int4, group=32"])
def test_small_numbers_lie_packed_and_come_back(tconv: Tconv, name: str) -> None:
    ran = tconv("w.safetensors", "--quantize", name, "--keep", "conv.*", "-o", "q.safetensors")
    assert ran == Ran(0, "q.safetensors\n", "")
    there = json.loads(tconv("inspect", "q.safetensors", "--json").out)["files"][0]["tensors"]
    (bytes_,) = [t["bytes"] for t in there if t["name"] == "fc.weight"]
    assert bytes_ == (384 if "float8" in name else 192)
    assert tconv("q.safetensors", "--step", "dequantize", "-o", "back.safetensors").code == 0
    back, x = load_file("back.safetensors")["fc.weight"], load_file("w.safetensors")["fc.weight"]
    sqnr = 10 * np.log10(np.square(x).sum() / np.square(back - x).sum())
    assert sqnr > {"float8_e4m3fn": 28, "float4_e2m1fn": 14}.get(name, 16)


def test_a_checkpoint_keeps_its_structure(tconv: Tconv) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(5, 8)).sum().backward()
    optimizer.step()
    torch.save({"state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "c.pt")
    ran = tconv("c.pt", "--quantize", "int8", "-o", "q.pt")
    assert (ran.code, ran.out) == (0, "q.pt\n")
    assert "the optimizer's state stays as it is" in ran.err
    made, before = torch.load("q.pt"), torch.load("c.pt")
    assert list(made["state_dict"]) == ["0.weight", "0.weight.scale", *list(before["state_dict"])[1:]]
    assert made["state_dict"]["0.weight"].dtype == torch.int8
    assert made["state_dict"]["1.num_batches_tracked"].dtype == torch.int64
    exp = made["optimizer"]["state"][0]["exp_avg"]
    assert torch.equal(exp, before["optimizer"]["state"][0]["exp_avg"])
    assert tconv("q.pt", "--step", "dequantize", "-o", "back.pt").code == 0
    back = torch.load("back.pt")
    want = made["state_dict"]["0.weight"].float() * made["state_dict"]["0.weight.scale"][:, None]
    assert list(back["state_dict"]) == list(before["state_dict"])
    assert torch.equal(back["state_dict"]["0.weight"], want)
    assert back["epoch"] == 3


def test_tied_weights_are_quantized_once(tconv: Tconv) -> None:
    w = torch.from_numpy(random(8, 4))
    torch.save({"embed.weight": w, "head.weight": w}, "t.pt")
    assert tconv("t.pt", "--quantize", "int8", "-o", "q.pt").code == 0
    made = torch.load("q.pt")
    assert made["embed.weight"].data_ptr() == made["head.weight"].data_ptr()
    assert made["embed.weight.scale"].data_ptr() == made["head.weight.scale"].data_ptr()


def test_what_pt_cannot_name_is_refused(tconv: Tconv) -> None:
    ran = tconv("w.safetensors", "--quantize", "int4", "-o", "q.pt")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot name the dtype int4" in ran.err
    assert ran.err.endswith("write .safetensors, or quantize to int8\n")  # --to int8 would leave it as it is
    assert not Path("q.pt").exists()


def test_shards_take_their_scales_along(tconv: Tconv) -> None:
    Path("m").mkdir()
    assert tconv("w.safetensors", "--format", "safetensors", "--shard-size", "1kB", "-o", "m/").code == 0
    assert tconv("m", "--quantize", "int8").out == "m.int8\n"
    index = json.loads(Path("m.int8/model.safetensors.index.json").read_text())
    shard = index["weight_map"]
    assert shard.keys() == {"conv.weight", "conv.weight.scale", "fc.weight", "fc.weight.scale", "fc.bias"}
    assert shard["fc.weight"] == shard["fc.weight.scale"]
    assert tconv("m.int8", "--step", "dequantize", "-o", "one.safetensors").code == 0
    tconv("w.safetensors", "--quantize", "int8", "-o", "q.safetensors")
    tconv("q.safetensors", "--step", "dequantize", "-o", "two.safetensors")
    assert tconv("diff", "one.safetensors", "two.safetensors").code == 0


def pictures(number: int) -> None:
    Path("d").mkdir()
    for n in range(number):
        pixels = np.random.default_rng(n).integers(0, 1 + 50 * n, (4, 5, 3), np.uint8)
        Image.fromarray(pixels).save(f"d/{n}.png")


def test_pictures_of_a_run_have_one_scale_whatever_the_batches(tconv: Tconv) -> None:
    pictures(5)
    chain = ("--normalize", "--stats", "0.5/0.5", "--quantize", "int8")
    assert tconv("d", *chain, "-o", "all.safetensors").code == 0
    assert tconv("d", *chain, "--batch-size", "2", "-o", "b.safetensors").code == 0
    whole = load_file("all.safetensors")
    scales = {whole[f"{n}.png.scale"].item() for n in range(5)}
    assert len(scales) == 1
    for k, name in enumerate(["b-00000.safetensors", "b-00001.safetensors", "b-00002.safetensors"]):
        batch = load_file(name)
        (stacked,) = [x for key, x in batch.items() if not key.endswith(".scale")]
        assert {x.item() for key, x in batch.items() if key.endswith(".scale")} == scales
        np.testing.assert_array_equal(stacked, [whole[f"{n}.png"] for n in range(2 * k, min(5, 2 * k + 2))])


def test_a_chain_on_8_bit_pictures_gives_what_onnxruntime_makes_of_its_floats(tconv: Tconv) -> None:
    pictures(4)
    chain = ("--normalize", "--stats", "imagenet", "--layout", "CHW")
    assert tconv("d", *chain, "-o", "floats.safetensors").code == 0
    assert (
        tconv("d", *chain, "--quantize", "uint8, calibrate=percentile, percentile=99", "-o", "q.safetensors").code == 0
    )
    made, floats = load_file("q.safetensors"), load_file("floats.safetensors")
    for n in range(4):
        name = f"{n}.png"
        want, _ = linear(floats[name], made[f"{name}.scale"], made[f"{name}.zero_point"], "uint8", 0)
        np.testing.assert_array_equal(made[name].astype(np.float32), want)
    every = np.concatenate([floats[f"{n}.png"].reshape(-1) for n in range(4)]).astype(np.float64)
    low, high = np.percentile(every, [0.5, 99.5])
    np.testing.assert_allclose(made["0.png.scale"], (high - low) / 255, rtol=1e-6)


def test_keep_and_min_sqnr(tconv: Tconv) -> None:
    ran = tconv("w.safetensors", "--quantize", "int4", "--keep", "fc*", "-o", "k.safetensors")
    assert ran == Ran(0, "k.safetensors\n", "")
    assert load_file("k.safetensors").keys() == {"conv.weight", "conv.weight.scale", "fc.weight", "fc.bias"}
    ran = tconv("w.safetensors", "--quantize", "int8", "--keep", "fcc*", "-o", "n.safetensors")
    assert (ran.code, ran.out) == (1, "")
    assert "--keep" in ran.err
    ran = tconv("w.safetensors", "--quantize", "int8", "--keep", "fc*=bfloat16", "-o", "n.safetensors")
    assert (ran.code, ran.out) == (2, "")
    assert "says to which dtype, and nothing is cast here" in ran.err
    both = ("--quantize", "int8", "--half", "--keep", "fc.weight=bfloat16")
    assert tconv("w.safetensors", *both, "-o", "h.safetensors").code == 0
    kinds = {
        t["name"]: t["dtype"]
        for t in json.loads(tconv("inspect", "h.safetensors", "--json").out)["files"][0]["tensors"]
    }
    assert kinds == {
        "conv.weight": "int8", "conv.weight.scale": "float32", "fc.weight": "bfloat16", "fc.bias": "float16",
    }  # fmt: skip
    ran = tconv("w.safetensors", "--quantize", "int8", "--min-sqnr", "200", "-o", "s.safetensors")
    assert ran.code == 0
    assert "conv.weight becomes float16: " in ran.err
    assert load_file("s.safetensors")["fc.weight"].dtype == np.float16
    assert tconv("w.safetensors", "--half", "--min-sqnr", "30", "-o", "x.safetensors").code == 2


def test_what_falls_short_is_rounded_once_to_the_dtype_of_the_rest(tconv: Tconv) -> None:
    tiny = load_file("w.safetensors")["fc.weight"] * np.float32(1e-6)  # of which float16 has a few digits only
    save_file({"fc.weight": tiny}, "t.safetensors")
    ran = tconv("t.safetensors", "--quantize", "int4", "--min-sqnr", "99", "--bf16", "-o", "b.safetensors")
    assert ran.code == 0
    assert "fc.weight becomes bfloat16: " in ran.err
    made = torch_load_file("b.safetensors")["fc.weight"]
    assert made.equal(torch.from_numpy(tiny).bfloat16())


@pytest.mark.parametrize("option", [("--on-overflow", "keep"), ("--max-error", "0.1")])
def test_options_of_casts_are_not_said_to_be_for_quantizing(tconv: Tconv, option: tuple[str, str]) -> None:
    ran = tconv("w.safetensors", "--quantize", "int8", *option, "-o", "x.safetensors")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("without a cast; say to which dtype: --half, --bf16, --to DTYPE\n")


def test_what_is_quantized_stays_so_in_later_runs(tconv: Tconv) -> None:
    tconv("w.safetensors", "--quantize", "float8_e4m3fn", "-o", "q.safetensors")
    ran = tconv("q.safetensors", "--half", "-o", "h.safetensors")
    assert ran.code == 0
    assert "what is quantized stays as it is (conv.weight and 3 more)" in ran.err
    there = json.loads(tconv("inspect", "h.safetensors", "--json").out)["files"][0]["tensors"]
    assert {t["name"]: t["dtype"] for t in there} == {
        "conv.weight": "float8_e4m3fn", "conv.weight.scale": "float32", "fc.weight": "float8_e4m3fn",
        "fc.weight.scale": "float32", "fc.bias": "float16",
    }  # fmt: skip
    assert tconv("h.safetensors", "--step", "dequantize", "-o", "b.safetensors").code == 0


def test_the_report_tells_what_quantizing_lost(tconv: Tconv) -> None:
    assert (
        tconv("w.safetensors", "--quantize", "int8", "--report", "r.json", "--verify", "-o", "q.safetensors").code == 0
    )
    tensors = {t["name"]: t for t in json.loads(Path("r.json").read_text())["outputs"][0]["tensors"]}
    (cast,) = tensors["fc.weight"]["casts"]
    tconv("q.safetensors", "--step", "dequantize", "-o", "back.safetensors")
    x, back = load_file("w.safetensors")["fc.weight"], load_file("back.safetensors")["fc.weight"]
    error = back.astype(np.float64) - x
    assert cast["sqnr_db"] == pytest.approx(
        10 * np.log10(np.square(x, dtype=np.float64).sum() / np.square(error).sum())
    )
    assert cast["max_abs_error"] == pytest.approx(np.abs(error).max(), rel=1e-4)


def test_dequantizing_to_half_may_overflow(tconv: Tconv) -> None:
    save_file({"w": np.array([[127, 1]], np.int8), "w.scale": np.array([1000], np.float32)}, "big.safetensors")
    ran = tconv("big.safetensors", "--step", "dequantize(float16)", "-o", "h.safetensors")
    assert (ran.code, ran.out) == (1, "")
    assert "1 of 2 values overflow float16" in ran.err
    ran = tconv("big.safetensors", "--step", "dequantize(float16)", "--on-overflow", "saturate", "-o", "h.safetensors")
    assert ran.code == 0
    assert load_file("h.safetensors")["w"].tolist() == [[65504, 1000]]
    ran = tconv("big.safetensors", "--step", "dequantize(float16)", "--on-overflow", "inf", "-o", "h.safetensors", "-f")
    assert load_file("h.safetensors")["w"].tolist() == [[np.inf, 1000]]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_and_nothing_written(tconv: Tconv, value: float) -> None:
    bad = random(3, 4)
    bad[1, 2] = value
    save_file({"ok": random(2, 2), "bad": bad}, "n.safetensors")
    ran = tconv("n.safetensors", "--quantize", "int8", "-o", "q.safetensors")
    assert (ran.code, ran.out) == (1, "")
    assert "n.safetensors: bad: quantize(int8): 1 " in ran.err
    assert "--keep" in ran.err
    assert not Path("q.safetensors").exists()


def test_a_name_that_is_taken_is_refused(tconv: Tconv) -> None:
    save_file({"w": random(2, 2), "w.scale": random(2)}, "taken.safetensors")
    ran = tconv("taken.safetensors", "--quantize", "int8", "-o", "q.safetensors")
    assert (ran.code, ran.out) == (1, "")
    assert "w.scale" in ran.err


def test_npy_holds_no_scales(tconv: Tconv) -> None:
    np.save("x.npy", random(3, 4))
    ran = tconv("x.npy", "--quantize", "int8", "-o", "q.npy")
    assert (ran.code, ran.out) == (1, "")
    assert ".npz or .safetensors" in ran.err
    assert tconv("x.npy", "--quantize", "int8").out == "x.int8.safetensors\n"


def test_the_plan_leaves_open_what_falls_short(tconv: Tconv) -> None:
    ran = tconv("w.safetensors", "--quantize", "int8", "--min-sqnr", "30", "-n")
    assert "int8 or float16 6x64 (decided by scan)" in ran.out
    ran = tconv("w.safetensors", "--quantize", "int8", "--min-sqnr", "30", "--bf16", "-n")
    assert "int8 or bfloat16 6x64 (decided by scan)" in ran.out


def test_the_plan_is_told_without_reading_values(tconv: Tconv) -> None:
    ran = tconv("w.safetensors", "--quantize", "int8", "-n")
    assert ran.code == 0
    assert "int8 6x64" in ran.out
    assert "w.int8.safetensors" in ran.out
    assert not Path("w.int8.safetensors").exists()


@pytest.mark.parametrize("calibrate", ["percentile", "mse", "entropy"])
def test_calibrations_leave_more_of_weights_with_outliers_than_minmax(tconv: Tconv, calibrate: str) -> None:
    w = random(4, 20_000)
    w[:, :3] = 40
    save_file({"w": w}, "o.safetensors")
    errors = {}
    for method in ("minmax", calibrate):
        tconv("o.safetensors", "--quantize", f"int4, calibrate={method}", "-o", "q.safetensors", "-f")
        tconv("q.safetensors", "--step", "dequantize", "-o", "back.safetensors", "-f")
        errors[method] = np.square(load_file("back.safetensors")["w"][:, 3:] - w[:, 3:]).mean()
    assert errors[calibrate] < 0.5 * errors["minmax"]


def test_an_int8_file_takes_at_most_27_hundredths(tconv: Tconv) -> None:
    """A ResNet's shapes at a quarter of its width, 3 MB."""
    layers = {f"layer{n}.conv.weight": random(c, c, 3, 3) for n, c in enumerate([16, 32, 64, 128, 192])}
    save_file(layers | {"fc.weight": random(1000, 128), "fc.bias": random(1000)}, "r.safetensors")
    assert tconv("r.safetensors", "--quantize", "int8").code == 0
    size = Path("r.int8.safetensors").stat().st_size
    assert size <= 0.27 * Path("r.safetensors").stat().st_size
