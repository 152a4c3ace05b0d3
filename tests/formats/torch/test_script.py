"""TorchScript archives: the state dict that torch.jit.load gives, bit for bit, and nothing of them is run."""

from __future__ import annotations

import io
import os
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

import pytest
import torch

from tconv.errors import TconvError
from tests.formats.conformance import values
from tests.formats.torch.made import read_pt, to_numpy, written
from tests.shared_data import manifest, shared

jit: Any = torch.jit  # it has no types
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's: TorchScript is deprecated


class Inner(torch.nn.Module):
    """A parameter, buffers of every kind, and a tensor that is neither."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
        self.frozen = torch.nn.Parameter(torch.ones(2).half(), requires_grad=False)
        self.register_parameter("missing", None)
        self.register_buffer("steps", torch.tensor([1, 2]))
        self.register_buffer("passing", torch.tensor([1.5]), persistent=False)
        self.register_buffer("none", None)
        self.plain = torch.tensor([9.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w.t() + self.plain


class Model(torch.nn.Module):
    """Modules in modules, shared parameters, and attributes of all the types that TorchScript has."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.again = torch.nn.Linear(2, 2)
        self.stack = torch.nn.Sequential(self.again, torch.nn.BatchNorm1d(2))
        self.tied = self.again.weight
        self.table = torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1)})
        self.listed = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.zeros(1))])
        self.register_buffer("maybe", torch.ones(1))
        for name in ("bfloat16", "float64", "complex64", "bool", "uint8", "uint16", "uint64", "int16", "float8_e5m2"):
            self.register_buffer(f"of_{name}", torch.tensor([0, 1, 1]).to(getattr(torch, name)))
        self.register_buffer("turned", torch.arange(6.0).view(2, 3).t())
        base = torch.arange(10.0)
        self.register_buffer("base", base)
        self.register_buffer("view", base[2:5])
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("scalar", torch.tensor(3.0))
        self.register_buffer("conj", torch.tensor([1 + 2j]).conj())
        self.n, self.f, self.s, self.z, self.big = 3, 1.5, "x", 1 + 2j, 2**40
        self.ints, self.floats, self.bools, self.tensors = [1, 2], [1.0], [True], [torch.ones(1), torch.zeros(2)]
        self.pairs, self.pair, self.device = {"a": 1}, (1, "a"), torch.device("cpu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.stack(self.inner(x)) + self.tensors[0] + self.n + self.ints[0] + self.pairs["a"]
        return out


# TorchScript reads types and not their names, and no newer spelling.
Model.__annotations__["maybe"] = Optional[torch.Tensor]  # noqa: UP045


def scripted(folder: Path) -> Path:
    jit.script(Model()).save(folder / "script.pt")
    return folder / "script.pt"


def traced(folder: Path) -> Path:
    jit.trace(Model().eval(), torch.ones(4, 3)).save(folder / "trace.pt")
    return folder / "trace.pt"


def mobile(folder: Path) -> Path:
    jit.script(Model())._save_for_lite_interpreter(str(folder / "mobile.ptl"))
    return folder / "mobile.ptl"


def with_extra_files(folder: Path) -> Path:
    jit.save(jit.script(Model()), folder / "extra.pt", _extra_files={"labels.txt": b"cat"})
    return folder / "extra.pt"


def with_odd_names(folder: Path) -> Path:
    module = torch.nn.Module()
    for name in ("0", "a b", "höhe", "class M(Module):", "[x]", "'"):
        module.register_buffer(name, torch.ones(1))
        module.register_parameter(name + "p", torch.nn.Parameter(torch.zeros(1)))
    jit.script(module).save(folder / "names.pt")
    return folder / "names.pt"


def assert_state_dict(path: Path) -> None:
    want = jit.load(path).state_dict()
    stream = read_pt(path)
    assert [t.spec.name for t in stream.tensors] == list(want)
    assert stream.others == ()
    assert stream.extra.kind == "weights"
    assert type(stream.extra.tree) is OrderedDict
    for tensor in stream.tensors:
        other = want[tensor.spec.name]
        assert f"torch.{tensor.spec.dtype}" == str(other.dtype)
        assert tensor.spec.shape == tuple(other.shape)
        assert values(tensor).tobytes() == to_numpy(other).tobytes()
        assert "requires_grad" not in tensor.spec.attrs  # nor has what state_dict() gives


@pytest.mark.parametrize("make", [scripted, traced, mobile, with_extra_files, with_odd_names])
def test_the_state_dict_is_that_of_torch(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    assert_state_dict(make(tmp_path))


def test_shared_parameters_are_aliases(tmp_path: Path) -> None:
    tensors = {t.spec.name: t for t in read_pt(scripted(tmp_path)).tensors}
    assert tensors["tied"].spec.alias_of is None
    assert [tensors[n].spec.alias_of for n in ("stack.0.weight", "again.weight")] == ["tied", "tied"]
    assert "place" in tensors["view"].spec.attrs


def test_a_note_says_what_is_left_out(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    (note,) = read_pt(path).notes
    assert note == (
        f"{path}: a TorchScript archive: read as its state dict, its code is left out, as are its other tensors: "
        "maybe, tensors, inner.plain"
    )


def test_what_is_written_is_loaded_as_a_state_dict(tmp_path: Path) -> None:
    written(tmp_path / "out.pt", read_pt(scripted(tmp_path)))
    got, want = torch.load(tmp_path / "out.pt", weights_only=True), jit.load(tmp_path / "script.pt").state_dict()
    assert list(got) == list(want)
    assert all(torch.equal(got[name].view(torch.uint8), want[name].view(torch.uint8)) for name in ("tied", "view"))
    assert got["tied"].data_ptr() == got["stack.0.weight"].data_ptr()


def test_a_frozen_program_has_no_names(tmp_path: Path) -> None:
    jit.freeze(jit.script(Model().eval())).save(tmp_path / "x.pt")
    with pytest.raises(TconvError, match=r"frozen TorchScript archive: its weights have become constants") as caught:
        read_pt(tmp_path / "x.pt")
    assert "before torch.jit.freeze" in caught.value.remedy


def test_a_program_without_weights_has_no_tensors(tmp_path: Path) -> None:
    jit.script(torch.nn.Sequential(torch.nn.ReLU())).save(tmp_path / "x.pt")
    assert read_pt(tmp_path / "x.pt").tensors == ()


class Quantized(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("q", torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.w[0]


def test_a_quantized_buffer_is_refused_by_its_name(tmp_path: Path) -> None:
    jit.script(Quantized()).save(tmp_path / "x.pt")
    stream = read_pt(tmp_path / "x.pt")
    assert [t.spec.name for t in stream.tensors] == ["w"]
    (other,) = stream.others
    assert (other.tensor, other.file) == ("q", str(tmp_path / "x.pt"))
    assert "a quantized tensor" in other.reason


def repacked(path: Path, change: Mapping[str, Callable[[bytes], bytes]]) -> Path:
    """The archive with some members changed; nothing else of it, and nothing added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            for end, make in change.items():
                data = make(data) if name.endswith(end) else data
            if not name.endswith("debug_pkl"):
                new.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return path


def without(line: bytes) -> Callable[[bytes], bytes]:
    return lambda data: b"\n".join(part for part in data.split(b"\n") if not part.lstrip().startswith(line))


@pytest.mark.parametrize("line", [b"__buffers__", b"__parameters__"])
def test_code_that_names_no_buffers_or_no_parameters_as_that_of_old_versions(tmp_path: Path, line: bytes) -> None:
    assert_state_dict(repacked(scripted(tmp_path), {".py": without(line)}))


def test_none_of_the_code_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = scripted(tmp_path)
    payload = b"import os\nos.mkdir('canary')\n"
    repacked(path, {".py": lambda data: payload + data})
    read_pt(path)
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data.pkl": lambda _: b"\x80\x02c__torch__\nM\n)\x81}b."}, "no 'code/__torch__.py'"),
        ({"data.pkl": lambda _: b"\x80\x02K\x01."}, "what is no module"),
        ({"data.pkl": lambda _: b"\x80\x02cos\nsystem\n)\x81}b."}, r"names os\.system, which is not allowed"),
        ({"data.pkl": lambda _: b"\x80\x02c__torch__\n../../M\n)\x81}b."}, "archive has no 'code/"),
        ({".py": lambda _: b"\xff\xfe"}, "what is no module"),
        ({".py": without(b"class ")}, "what is no module"),
    ],
)
def test_damaged_programs(tmp_path: Path, change: Mapping[str, Callable[[bytes], bytes]], said: str) -> None:
    path = repacked(scripted(tmp_path), change)
    with pytest.raises(TconvError, match=said) as caught:
        read_pt(path)
    assert caught.value.file == str(path)


def module(depth: int) -> bytes:
    """A pickle of modules in modules, each of which holds the next twice."""
    made = b"c__torch__\nM\n)\x81}bq\x00"
    for n in range(depth):
        made = b"c__torch__\nM\n)\x81}(U\x01a" + made + b"U\x01bh" + bytes([n]) + b"ubq" + bytes([n + 1])
    return b"\x80\x02" + made + b"."


def test_bombs_of_modules_do_not_go_off(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    with zipfile.ZipFile(path, "w") as made:
        for name, data in {
            "data.pkl": module(60),
            "constants.pkl": b"",
            "code/__torch__.py": b"class M(Module):",
        }.items():
            made.writestr(f"x/{name}", data)
    with pytest.raises(TconvError, match="over and over"):
        read_pt(path)
    itself = b"\x80\x02c__torch__\nM\n)\x81q\x00}U\x01ah\x00sb."
    repacked(path, {"data.pkl": lambda _: itself})
    with pytest.raises(TconvError, match="nested without end"):
        read_pt(path)


def test_code_that_unpacks_to_too_much(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    bomb = b"# " + bytes(101_000_000)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "y.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, bomb if name.endswith(".py") else old.read(name))
    assert os.path.getsize(tmp_path / "y.pt") < 1_000_000  # noqa: PTH202  # shorter
    with pytest.raises(TconvError, match=r"unpacks to 101,000,002 bytes, and no more than .* are read"):
        read_pt(tmp_path / "y.pt")


FILES = [row for row in manifest() if row["special"].endswith(("zip TorchScript", "zip TorchScript bytecode"))]


@pytest.mark.parametrize("row", FILES, ids=lambda row: row["path"].rpartition("/")[2])
def test_real_files(row: Any) -> None:
    path = shared(*row["path"].split("/"))
    if path.suffix == ".pt":
        assert_state_dict(path)
    assert read_pt(path).tensors == ()
