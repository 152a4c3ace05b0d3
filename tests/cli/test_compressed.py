"""compressed-tensors: loaded and decompressed by the library itself, and by transformers, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tconv.formats.safetensors import read
from tconv.writer import ReadOptions
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]

WHY = "compares with the library: pip install 'tconv[peers]'"
QUANTS = [
    "int8",
    "int4",
    "float8_e4m3fn",
    "int8, axis=None",
    "int4, group=16",
    "float8_e4m3fn, group=16",
    "int8, scheme=affine",
    "int4, scheme=affine",
    "int8, axis=None, scheme=affine",
    "int4, group=16, scheme=affine",
]


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def model(tconv: Tconv) -> Path:
    """A folder as Hugging Face's libraries write it, with rows that fill no whole word of zero points."""
    folder = Path("m")
    folder.mkdir()
    weights = {f"layers.{n}.proj.weight": random(11, 64, seed=n) for n in range(3)}
    weights |= {"embed.weight": random(9, 64), "norm.weight": random(64), "layers.0.proj.bias": random(11)}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"model_type": "none", "dtype": "float32"}))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def written(tconv: Tconv, model: Path, quant: str, *options: str) -> Path:
    ran = tconv(model, "--quantize", quant, "--format", "compressed-tensors", "--keep", "embed*", *options, "-o", "q/")
    assert ran == Ran(0, "q/\n", "")
    return Path("q")


def dequantized(tconv: Tconv, model: Path, quant: str) -> dict[str, Any]:
    assert tconv(model / "model.safetensors", "--quantize", quant, "--keep", "embed*", "-o", "t.safetensors").code == 0
    assert tconv("t.safetensors", "--step", "dequantize", "-o", "d.safetensors").code == 0
    return load_file("d.safetensors")


@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize("shards", [False, True])
def test_the_library_decompresses_what_tconv_dequantizes(tconv: Tconv, model: Path, quant: str, shards: bool) -> None:
    pytest.importorskip("compressed_tensors", reason=WHY)
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig
    from safetensors.torch import load_file as load

    folder = written(tconv, model, quant, "--verify", *(["--shard-size", "3kB"] if shards else []))
    state = {name: x for file in folder.glob("*.safetensors") for name, x in load(file).items()}
    config = QuantizationConfig(**json.loads((folder / "config.json").read_text())["quantization_config"])
    want = dequantized(tconv, model, quant)
    (scheme,) = config.config_groups.values()
    assert sorted(scheme.targets) == [f"layers.{n}.proj" for n in range(3)]
    assert config.ignore == ["embed"]
    compressor = BaseCompressor.get_value_from_registry(str(scheme.format))
    for layer in scheme.targets:
        names = compressor.compression_param_names(scheme)
        module = {name: state.pop(f"{layer}.{name}") for name in names if f"{layer}.{name}" in state}
        assert len(module) == len(names)
        got = compressor.decompress(module, scheme)["weight"]
        assert got.dtype == torch.float32
        np.testing.assert_array_equal(got.numpy(), want.pop(f"{layer}.weight"))
    assert {name: x.tolist() for name, x in state.items()} == {name: x.tolist() for name, x in want.items()}


@pytest.mark.parametrize("quant", ["int8", "int4", "int8, scheme=affine", "int4, group=16, scheme=affine"])
def test_words_are_those_of_the_library(tconv: Tconv, model: Path, quant: str) -> None:
    pytest.importorskip("compressed_tensors", reason=WHY)
    import torch
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    made = load_file(written(tconv, model, quant) / "model.safetensors")
    tconv(model / "model.safetensors", "--quantize", quant, "--keep", "embed*", "-o", "t.safetensors")
    bits = 4 if "int4" in quant else 8
    numbers, zeros = unpacked(Path("t.safetensors"), "layers.0.proj.weight"), None
    if "affine" in quant:
        zeros = unpacked(Path("t.safetensors"), "layers.0.proj.weight.zero_point")
    packed = pack_to_int32(torch.from_numpy(numbers), bits)
    np.testing.assert_array_equal(made["layers.0.proj.weight_packed"], packed.numpy())
    if zeros is not None:
        packed = pack_to_int32(torch.from_numpy(zeros.reshape(11, -1)), bits, packed_dim=0)
        np.testing.assert_array_equal(made["layers.0.proj.weight_zero_point"], packed.numpy())


def unpacked(path: Path, name: str) -> np.ndarray[Any, np.dtype[np.int8]]:
    """The numbers of a quantized tensor in tconv's own file, as int8."""
    (tensor,) = [t for t in read(path, "", ReadOptions()).tensors if t.spec.name == name]
    return tensor.source.read(0, tensor.spec.size).astype(np.int8).reshape(tensor.spec.shape)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", ", scheme=affine"])
@pytest.mark.parametrize("quant", ["int8", "int4, group=16", "float8_e4m3fn", "int8, axis=None"])
@pytest.mark.filterwarnings("ignore")  # those of the libraries are theirs
def test_transformers_loads_the_folder(tconv: Tconv, quant: str, scheme: str) -> None:
    """Affine ones dequantized only: compressed-tensors 0.20 makes no room for the zero points that it packs itself."""
    if scheme and quant.startswith("float"):
        pytest.skip("floats have no zero points")
    quant += scheme
    pytest.importorskip("compressed_tensors", reason=WHY)
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained("m", max_shard_size="20KB")
    keep = ("--keep", "*embed*", "--keep", "lm_head*")
    ran = tconv("m", "--quantize", quant, "--format", "compressed-tensors", *keep, "-o", "q/")
    assert (ran.code, ran.out) == (0, "q/\n")
    assert tconv("m", "--quantize", quant, *keep, "-o", "t.safetensors").code == 0
    assert tconv("t.safetensors", "--step", "dequantize", "-o", "d.safetensors").code == 0
    config_of: Any = transformers.CompressedTensorsConfig
    how: dict[str, Any] = {"quantization_config": config_of(dequantize=True)} if scheme else {}
    loaded = transformers.LlamaForCausalLM.from_pretrained("q", **how)
    tokens = torch.arange(8)[None]
    logits = loaded(tokens).logits  # the first pass decompresses
    want = load_file("d.safetensors")
    assert want.keys() <= loaded.state_dict().keys()
    for name, x in want.items():
        np.testing.assert_array_equal(loaded.state_dict()[name].numpy(), x)
    plain = transformers.LlamaForCausalLM(config)
    plain.load_state_dict({name: torch.from_numpy(x) for name, x in want.items()})
    assert torch.equal(logits, plain(tokens).logits)


def test_the_folder_is_complete_and_its_config_true(tconv: Tconv, model: Path) -> None:
    folder = written(tconv, model, "int8")
    assert {p.name for p in folder.iterdir()} == {"model.safetensors", "config.json", "tokenizer.json"}
    config = json.loads((folder / "config.json").read_text())
    assert (config["model_type"], config["dtype"]) == ("none", "float32")
    told = config["quantization_config"]
    assert (told["quant_method"], told["format"], told["quantization_status"]) == (
        "compressed-tensors", "pack-quantized", "compressed",
    )  # fmt: skip
    there = load_file(folder / "model.safetensors")
    assert {name: (str(x.dtype), x.shape) for name, x in there.items() if "layers.1" in name} == {
        "layers.1.proj.weight_packed": ("int32", (11, 16)),
        "layers.1.proj.weight_scale": ("float32", (11, 1)),
        "layers.1.proj.weight_shape": ("int64", (2,)),
    }
    assert there["layers.1.proj.weight_shape"].tolist() == [11, 64]


def test_shards_have_an_index_of_these_names(tconv: Tconv, model: Path) -> None:
    folder = written(tconv, model, "int8", "--shard-size", "3kB")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    for name, shard in index["weight_map"].items():
        assert name in load_file(folder / shard)
    assert "layers.2.proj.weight_packed" in index["weight_map"]


def test_a_file_by_itself_gets_a_config(tconv: Tconv) -> None:
    save_file({"fc.weight": random(4, 8)}, "w.safetensors")
    ran = tconv("w.safetensors", "--quantize", "int8", "--format", "compressed-tensors", "-o", "q/")
    assert ran == Ran(0, "q/\n", "")
    assert json.loads(Path("q/config.json").read_text()).keys() == {"quantization_config"}


@pytest.mark.parametrize(
    ("tensor", "quant", "words"),
    [
        ("conv.weight", "int8", "the weights of linear layers: L.weight, of two axes"),
        ("fc.kernel", "int8", "the weights of linear layers: L.weight, of two axes"),
        ("model.embed_tokens.weight", "int8", "it is an embedding by its name"),
        ("wte.weight", "int8", "it is an embedding by its name"),
        ("fc.weight", "uint8", "compressed-tensors has no uint8; it has int8, int4, float8_e4m3fn"),
        ("fc.weight", "int8, axis=1", "its scales are along axis 1"),
        ("odd.weight", "int8", "its rows of 6 elements of 8 bits do not fill words of 32 bits"),
    ],
)
def test_what_the_layout_has_no_place_for(tconv: Tconv, tensor: str, quant: str, words: str) -> None:
    shape = {"conv.weight": (2, 4, 3, 3), "odd.weight": (4, 6)}.get(tensor, (4, 8))
    save_file({tensor: random(*shape), "ok.weight": random(8, 8)}, "w.safetensors")
    argv = ("w.safetensors", "--quantize", quant, "--format", "compressed-tensors", "-o", "q/")
    ran = tconv(*argv, "--only", tensor)
    assert (ran.code, ran.out) == (1, "")
    assert f"w.safetensors: {tensor}: " in ran.err
    assert words in ran.err
    assert not Path("q").exists()
    if quant == "int8":
        assert tconv(*argv, "--keep", tensor).code == 0


def test_what_cannot_be_a_folder_of_it(tconv: Tconv, model: Path) -> None:
    ran = tconv(model, "--quantize", "int8", "--format", "compressed-tensors", "-o", "q.safetensors")
    assert (ran.code, ran.out) == (2, "")
    assert "say where with -o DIR/" in ran.err
    save_file({"fc.weight": random(4, 8)}, "w.safetensors")
    ran = tconv("w.safetensors", "--quantize", "int8", "--format", "compressed-tensors")
    assert (ran.code, ran.out) == (2, "")
    assert "-o DIR/" in ran.err
    ran = tconv(model, "--half", "--format", "compressed-tensors", "-o", "q/")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing in it is quantized" in ran.err
    (model / "config.json").write_text('{"quantization_config": {}}')
    argv = (model, "--quantize", "int8", "--keep", "embed*", "--format", "compressed-tensors", "-o", "q/")
    ran = tconv(*argv)
    assert (ran.code, ran.out) == (1, "")
    assert "says that it is quantized already" in ran.err
    (model / "config.json").write_text("[")
    ran = tconv(*argv)
    assert (ran.code, ran.out) == (1, "")
    assert "its config.json is broken" in ran.err
    assert not Path("q").exists()


def test_a_folder_of_one_file_takes_its_companions_along_in_other_formats_too(tconv: Tconv, model: Path) -> None:
    assert tconv(model, "--half", "-o", "h/") == Ran(0, "h/\n", "")
    assert {p.name for p in Path("h").iterdir()} == {"model.safetensors", "config.json", "tokenizer.json"}
    assert (Path("h") / "config.json").read_text() == (model / "config.json").read_text()


def test_the_plan_tells_names_and_sizes(tconv: Tconv, model: Path) -> None:
    argv = (model, "--quantize", "int4", "--keep", "embed*", "--format", "compressed-tensors", "-o", "q/")
    ran = tconv(*argv, "-n")
    assert ran.code == 0
    assert "layers.0.proj.weight_packed" in ran.out
    assert "config.json" in ran.out
    assert not Path("q").exists()
