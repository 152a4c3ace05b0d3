"""Thousands of files with damage of all kinds: what the format's own library makes of each, or one sentence."""

from __future__ import annotations

import io
import random
import resource
import struct
import time
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from tconv import registry
from tconv.errors import TconvError, TconvErrors, raise_all
from tconv.evaluate import evaluate
from tconv.writer import ReadOptions
from tests.formats.conformance import same
from tests.formats.test_npz import load
from tests.formats.test_safetensors import library
from tests.formats.torch.made import saved, to_numpy
from tests.shared_data import SHARED, manifest

if TYPE_CHECKING:
    from tconv.ops import Array

    Arrays = Mapping[str, Array]

FILES = 8000  # of each kind
SECONDS = 5.0  # that one file may take
MEMORY = 300_000  # kB that all of them together may take
LARGEST = 20_000  # bytes of a real file: in a larger one most damage hits values

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, *b"(.0RbQhquset}])cKNX\x93\x94{}[]\",:'PK")
NUMBERS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 1 << 31, 100_000_001)
LARGE = (1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 100_000_001, 1 << 40)


def flip(data: bytearray, at: int, chosen: random.Random) -> None:
    data[at] ^= 1 << chosen.randrange(8)


def overwrite(data: bytearray, at: int, chosen: random.Random) -> None:
    data[at] = chosen.choice((*INTERESTING, chosen.randrange(256)))


def delete(data: bytearray, at: int, chosen: random.Random) -> None:
    del data[at : at + chosen.choice((1, 1, 2, 8, 100))]


def insert(data: bytearray, at: int, chosen: random.Random) -> None:
    data[at:at] = chosen.choice((chosen.randbytes(1), chosen.randbytes(8), bytes(64), b"\xff" * 4))


def copy(data: bytearray, at: int, chosen: random.Random) -> None:
    other, run = chosen.randrange(len(data)), chosen.choice((1, 4, 16, 200))
    data[at : at + run] = data[other : other + run]


def blank(data: bytearray, at: int, chosen: random.Random) -> None:
    run = min(chosen.choice((1, 4, 16, 200)), len(data) - at)
    data[at : at + run] = chosen.choice((b"\0", b"\xff", b" ")) * run


def number(data: bytearray, at: int, chosen: random.Random) -> None:
    """A count, an offset or a size that is another."""
    layout, values = chosen.choice((("<I", NUMBERS), ("<Q", LARGE), (">I", NUMBERS), ("<H", (0, 1, 0xFFFF))))
    struct.pack_into(layout, data, min(at, len(data) - 8), chosen.choice(values))


def digits(data: bytearray, at: int, chosen: random.Random) -> None:
    """The same in a header of text."""
    places = [n for n in range(len(data)) if 48 <= data[n] <= 57]
    if places:
        data[chosen.choice(places)] = chosen.choice(b"0123456789-,.e ")


def cut(data: bytearray, at: int, chosen: random.Random) -> None:
    del data[at:]


def append(data: bytearray, at: int, chosen: random.Random) -> None:
    data += chosen.choice((b"\0", chosen.randbytes(40), bytes(data[:at])))


DAMAGE = (flip, flip, overwrite, overwrite, delete, insert, copy, blank, number, number, digits, digits, cut, append)


def damaged(data: bytes, chosen: random.Random) -> bytes:
    """One to four changes; half of them where the structure is, near the beginning and the end."""
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        if len(changed) < 9:
            break
        size = len(changed)
        at = chosen.choice(
            (chosen.randrange(size), chosen.randrange(min(size, 300)), size - 1 - chosen.randrange(min(size, 150)))
        )
        chosen.choice(DAMAGE)(changed, at, chosen)
    return bytes(changed)


def member_damaged(data: bytes, chosen: random.Random) -> bytes:
    """An archive that is sound and holds a damaged member: what checksums do not tell."""
    buffer = io.BytesIO()
    method = chosen.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", method) as new:
        names = old.namelist()
        hit = chosen.choice([n for n in names if n.endswith((".pkl", ".npy", ".py"))])
        for name in names:
            content = old.read(name)
            new.writestr(name, damaged(content, chosen) if name == hit else content)
    return buffer.getvalue()


def any_damage(data: bytes, chosen: random.Random) -> bytes:
    if data.startswith(b"PK") and chosen.random() < 0.5:
        return member_damaged(data, chosen)
    return damaged(data, chosen)


def arrays() -> dict[str, Any]:
    r = np.random.default_rng(0)
    return {
        "w": r.standard_normal((5, 7), np.float32),
        "half": r.standard_normal(9).astype(np.float16),
        "mask": np.array([True, False, True]),
        "n": np.array(3),
        "empty": np.zeros((0, 2)),
        "z": np.array([1 + 2j], np.complex64),
    }


def checkpoint() -> dict[Any, Any]:
    torch.manual_seed(0)
    w = torch.arange(12.0).view(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    state = OrderedDict(w=w, row=w[1], turned=w.t(), b=torch.nn.Parameter(torch.tensor([1, 2]).bfloat16()))
    return {"epoch": 300, "model": model.state_dict(), "state": state, 3: [torch.tensor([1 + 2j]).conj(), (1.5, "x")]}


def made_npy(folder: Path) -> Iterator[Path]:
    for n, order in enumerate("CF"):
        np.save(folder / f"{n}.npy", np.asarray(arrays()["w"], order=order))  # type: ignore[call-overload]  # C or F
        yield folder / f"{n}.npy"


def made_npz(folder: Path) -> Iterator[Path]:
    np.savez(folder / "stored.npz", **arrays())
    np.savez_compressed(folder / "deflated.npz", **arrays())
    return iter((folder / "stored.npz", folder / "deflated.npz"))


def made_safetensors(folder: Path) -> Iterator[Path]:
    (folder / "x.safetensors").write_bytes(save(arrays() | {"n": np.array([3])}, {"format": "np"}))
    yield folder / "x.safetensors"


def made_zip(folder: Path) -> Iterator[Path]:
    yield saved(folder / "x.pt", checkpoint())


def made_legacy(folder: Path) -> Iterator[Path]:
    yield saved(folder / "x.pt", checkpoint(), legacy=True)


def real(suffixes: tuple[str, ...], start: bytes) -> Iterator[Path]:
    """Small files that people have published."""
    for row in manifest():
        path = SHARED / "data" / row["path"]
        if path.suffix in suffixes and row["ref_loads"] == "yes" and path.stat().st_size <= LARGEST:
            with path.open("rb") as file:
                if file.read(len(start)) == start:
                    yield path


def by_torch(path: Path) -> dict[str, Array]:
    found: dict[str, Array] = {}

    def visit(value: Any, keys: tuple[str, ...]) -> None:
        if isinstance(value, torch.Tensor):
            found[".".join(keys) or "x"] = to_numpy(value)
        elif isinstance(value, dict):
            for key, item in (*value.items(), *vars(value).items()) if hasattr(value, "__dict__") else value.items():
                visit(item, (*keys, str(key)))
        elif isinstance(value, list | tuple):
            for n, item in enumerate(value):
                visit(item, (*keys, str(n)))

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # Of a member that is marked as a folder torch gives memory that nobody has written to.
            if any(member.external_attr & _FOLDER for member in archive.infolist()):
                raise ValueError
    visit(torch.load(path, weights_only=True, map_location="cpu"), ())
    return found


def by_numpy(path: Path) -> dict[str, Array]:
    return {"x": np.load(path, allow_pickle=False)}


_FOLDER = 0x10  # an attribute of MS-DOS
PICKLE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
PT = (".pt", ".pth", ".bin", ".ckpt", ".th")
KINDS: dict[str, tuple[Callable[[Path], Iterator[Path]], tuple[str, ...], bytes, Callable[[Path], Arrays]]] = {
    "npy": (made_npy, (".npy",), b"\x93NUMPY", by_numpy),
    "npz": (made_npz, (".npz",), b"PK", load),
    "safetensors": (made_safetensors, (".safetensors",), b"", library),
    "zip": (made_zip, PT, b"PK", by_torch),
    "legacy": (made_legacy, PT, PICKLE, by_torch),
}


def outcome(path: Path) -> Arrays | None:
    """The values, or None where tconv refuses, in sentences that name the file and no bug."""
    try:
        stream = registry.reader(registry.detect(path))(path, "x", ReadOptions())
        raise_all(stream.others)
        return {tensor.spec.name: evaluate(tensor)[0] for tensor in stream.tensors}
    except TconvError as problem:
        problems = problem.problems if isinstance(problem, TconvErrors) else [problem]
    for one in problems:
        text = str(one)
        assert text.startswith(str(path)), text
        assert "\n" not in text
        assert len(text) < 3000
    return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")  # those of the libraries about odd files
def test_damaged_files_are_read_right_or_refused(tmp_path: Path, kind: str) -> None:
    make, suffixes, start, reference = KINDS[kind]
    files = [*make(tmp_path), *real(suffixes, start)]
    contents = [path.read_bytes() for path in files]
    chosen = random.Random(kind)
    path = tmp_path / f"damaged{files[0].suffix}"
    seen: Counter[str] = Counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(FILES):
        data = any_damage(contents[n % len(contents)] if n % 2 else contents[0], chosen)
        path.write_bytes(data)
        started = time.monotonic()
        got = outcome(path)
        assert time.monotonic() - started < SECONDS, data[:1000]
        if got is None:
            seen["refused"] += 1
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = reference(path)
        except Exception:  # the libraries say no in many ways, and are stricter in some
            seen["read, and refused by the library"] += 1
            continue
        assert sorted(got) == sorted(want), data[:1000]
        for name, array in want.items():
            assert same(got[name], array), (name, data[:1000])
        seen["read"] += 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEMORY
    assert seen["refused"] > FILES / 5
    assert seen["read"] > FILES / 50
    assert seen["read, and refused by the library"] < FILES / 5, seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's: TorchScript is deprecated
def test_damaged_programs_are_read_or_refused(tmp_path: Path) -> None:
    """torch itself is not asked: it would run what is damaged."""
    jit: Any = torch.jit  # it has no types
    jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))).save(tmp_path / "x.pt")
    data, chosen, path = (tmp_path / "x.pt").read_bytes(), random.Random(0), tmp_path / "damaged.pt"
    seen: Counter[bool] = Counter()
    for _ in range(FILES // 4):
        path.write_bytes(any_damage(data, chosen))
        started = time.monotonic()
        seen[outcome(path) is None] += 1
        assert time.monotonic() - started < SECONDS
    assert min(seen.values()) > FILES / 40
