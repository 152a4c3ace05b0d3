"""The unpickler: what Python's own makes of plain data, and a refusal for everything else."""

from __future__ import annotations

import copyreg
import functools
import importlib
import io
import operator
import os
import pickle
import re
import resource
import runpy
import shutil
import struct
import subprocess
import time
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.cpp_extension
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError, raise_all
from tconv.formats.torch.storage import Storages
from tconv.formats.torch.tree import flatten
from tconv.formats.torch.unpickle import Unpickler
from tests.formats.torch.made import read_pt, saved


def loads(data: bytes) -> Any:
    """The value as the stream's tree has it."""
    machine = Unpickler(io.BytesIO(data), len(data), Storages().load)
    flat = flatten(machine.load(), "x", len(data))
    raise_all(flat.others)
    return flat.tree


def refusal(data: bytes) -> str:
    with pytest.raises(TconvError) as caught:
        loads(data)
    return str(caught.value)


keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
scalars = keys | st.complex_numbers(allow_nan=False) | st.sets(keys) | st.frozensets(keys)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner) | st.tuples(inner),
    max_leaves=20,
)


@given(values, st.integers(2, 5))
def test_plain_data_are_what_was_pickled(value: object, protocol: int) -> None:
    got = loads(pickle.dumps(value, protocol))
    assert got == value
    assert repr(got) == repr(pickle.loads(pickle.dumps(value, protocol)))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_containers_and_numbers_of_all_sizes(protocol: int) -> None:
    ordered = OrderedDict([("b", 1), ("a", 2)])
    ordered._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]  # as torch does
    value = [
        *(ordered, defaultdict(int, {"a": 1}), defaultdict(None), Counter("aab"), {1: {2: {3: []}}}),
        *(-1, 255, 256, 65_535, 65_536, 2**31, -(2**31), 2**63, -(2**1000), 0.1, float("-inf")),
        *("x" * 300, b"x" * 300, bytearray(b"x" * 300), bytearray(), b"", slice(1, None), range(3)),
    ]
    got = loads(pickle.dumps(value, protocol))
    assert got == value
    assert [type(v) for v in got] == [type(v) for v in value]
    assert vars(got[0]) == {"_metadata": {"": {"version": 1}}}


def test_text_of_python_2() -> None:
    assert loads(b"\x80\x02]q\x00(U\x01xU\x02\xc3\xa9U\x01\xffT\x01\x00\x00\x00ye.") == ["x", "é", b"\xff", "y"]


def test_numpy_scalars_and_arrays_as_numpy_pickles_them() -> None:
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), np.int8)), np.array(3), np.zeros((0, 2))]
    for protocol in (2, 3, 4, 5):
        for array in arrays:
            got = loads(pickle.dumps([array], protocol))[0]
            assert (got.dtype, got.shape, got.tolist()) == (array.dtype, array.shape, array.tolist())
        got = loads(pickle.dumps([np.float16(1.5), np.str_("ab"), np.bool_(True)], protocol))
        assert got == [np.float16(1.5), np.str_("ab"), np.bool_(True)]
        assert [type(v) for v in got] == [np.float16, np.str_, np.bool_]


class Reduced:
    """Pickles as a call of ``function``."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("function", "args", "path"),
    [
        (os.system, ("touch canary",), r"(posix|nt)\.system"),
        (os.mkdir, ("canary",), r"(posix|nt)\.mkdir"),
        (eval, ("__import__('os').mkdir('canary')",), r"builtins\.eval"),
        (exec, ("open('canary', 'w')",), r"builtins\.exec"),
        (getattr, ("canary", "upper"), r"builtins\.getattr"),
        (__import__, ("os",), r"builtins\.__import__"),
        (open, ("canary", "w"), r"(_?io|builtins)\.open"),
        (map, (None, []), r"(builtins\.map|itertools\.imap)"),
        (type, ("X", (), {}), r"builtins\.type"),
        (operator.attrgetter, ("canary",), r"_?operator\.attrgetter"),
        (functools.partial, (os.mkdir, "canary"), r"functools\.partial"),
        (subprocess.run, (["mkdir", "canary"],), r"(subprocess|commands)\.run"),
        (shutil.rmtree, ("canary",), r"shutil\.rmtree"),
        (importlib.import_module, ("canary",), r"importlib\.import_module"),
        (runpy.run_path, ("canary",), r"runpy\.run_path"),
        (bytes.fromhex, ("00",), r"builtins\.(getattr|bytes\.fromhex)"),
        (torch.storage._load_from_bytes, (b"canary",), r"torch\.storage\._load_from_bytes"),
        (torch.jit.load, ("canary",), r"torch\.jit\._serialization\.load"),
        (torch.hub.load_state_dict_from_url, ("file:///canary",), r"torch\.hub\.load_state_dict_from_url"),
        (torch.utils.cpp_extension.load, ("canary", ["canary.c"]), r"torch\.utils\.cpp_extension\.load"),
        (pickle.loads, (b"cos\nmkdir\n(S'canary'\ntR.",), r"_?pickle\.loads"),
        (torch.load, ("canary",), r"torch\.serialization\.load"),
        (torch.hub.load, ("canary", "canary"), r"torch\.hub\.load"),
        (np.load, ("canary",), r"numpy.*\.load"),
        (np.fromfile, ("canary",), r"numpy.*\.fromfile"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_nothing_is_called_that_a_pickle_names(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: Any,
    args: tuple[Any, ...],
    path: str,
    protocol: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(pickle.dumps([Reduced(function, *args)], protocol))
    if protocol >= 2:  # the earlier ones are refused for their opcodes where those come first
        assert re.search(f"names {path}, which is not allowed: a pickle can execute any code", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_a_checkpoint_with_a_payload_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, legacy: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path / "x.pt", {"w": torch.ones(2), "m": Reduced(os.mkdir, "canary")}, legacy=legacy)
    with pytest.raises(TconvError, match=r"posix\.mkdir|nt\.mkdir") as caught:
        read_pt(path)
    assert caught.value.file == str(path)
    assert not (tmp_path / "canary").exists()


def text(value: str) -> bytes:
    return pickle.BINUNICODE + struct.pack("<I", len(value.encode())) + value.encode()


HOSTILE = {
    "nothing": b"",
    "no value": b"\x80\x02.",
    "two values": b"\x80\x02NN.",
    "no end": b"\x80\x02N",
    "an open mark": b"\x80\x02N(N.",
    "a future protocol": b"\x80\xffN.",
    "an underflow": b"\x80\x02R.",
    "a tuple of too few": b"\x80\x02N\x87.",
    "a memo that is not there": b"\x80\x02h\x07.",
    "a mark that is not there": b"\x80\x02e.",
    "a huge text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
    "a huge text, by half": b"\x80\x02X\xff\xff\xff\xffx.",
    "huge bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
    "a huge bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",
    "a huge integer": b"\x80\x02\x8b\xff\xff\xff\x7fx.",
    "a long integer": b"\x80\x02\x8b" + struct.pack("<i", 100_000) + b"\x7f" * 100_000 + b".",
    "a negative length": b"\x80\x02\x8b\xff\xff\xff\xff.",
    "a frame beyond the end": b"\x80\x04\x95" + b"\xff" * 4,
    "text that is none": b"\x80\x02X\x01\x00\x00\x00\xff.",
    "an extension": b"\x80\x02\x82\x01.",
    "a larger extension": b"\x80\x02\x84\x01\x00\x00\x00.",
    "a buffer out of band": b"\x80\x05\x97.",
    "a persistent id as text": b"\x80\x02Pstorage\n.",
    "a persistent id that is a number": b"\x80\x02K\x01Q.",
    "a persistent id of another kind": b"\x80\x02(" + text("module") + b"NNNNtQ.",
    "a persistent id without a type": b"\x80\x02("
    + text("storage")
    + text("x")
    + text("0")
    + text("cpu")
    + b"K\x01tQ.",
    "opcode INST of a command": b"(S'touch canary'\nios\nsystem\n.",
    "opcode INST of a command in protocol 2": b"\x80\x02(" + text("touch canary") + b"ios\nsystem\n.",
    "opcode OBJ of a command": b"\x80\x02(cos\nsystem\n" + text("touch canary") + b"o.",
    "opcode NEWOBJ of a command": b"\x80\x02cos\nsystem\n" + text("touch canary") + b"\x85\x81.",
    "opcode NEWOBJ_EX of a command": b"\x80\x04cos\nsystem\n)}\x92.",
    "opcode NEWOBJ of a number": b"\x80\x02K\x01)\x81.",
    "opcode NEWOBJ of a text": b"\x80\x02" + text("argparse.Namespace") + b")\x81.",
    "opcode NEWOBJ with arguments": b"\x80\x02cargparse\nNamespace\nK\x01\x85\x81.",
    "opcode NEWOBJ_EX of a harmless class": b"\x80\x04cargparse\nNamespace\n)}\x92.",
    "a state that is no dict": b"\x80\x02cargparse\nNamespace\n)\x81K\x01b.",
    "a state of names that are none": b"\x80\x02cargparse\nNamespace\n)\x81}K\x01K\x02sb.",
    "a state that holds itself": b"\x80\x02cargparse\nNamespace\n)\x81q\x00}" + text("a") + b"h\x00sb.",
    "items of a namespace": b"\x80\x02cargparse\nNamespace\n)\x81K\x01K\x02s.",
    "a namespace as a key": b"\x80\x02}cargparse\nNamespace\n)\x81Ns.",
    "a path of a number": b"\x80\x02cpathlib\nPosixPath\nK\x01\x85R.",
    "a class of a dict overwritten": b"\x80\x02ccollections\nOrderedDict\n)R}" + text("__class__") + b"Nsb.",
    "a state of a dtype": b"\x80\x02ctorch\nfloat32\n}b.",
    "a memo at a huge place that is not there": b"\x80\x02j\xff\xff\xff\xff.",
    "text opcodes of protocol 0": b"(lp0\nS'x'\nag0\n.",
    "a pickle in a pickle": b"\x80\x02c_pickle\nloads\n" + text("cos\nsystem\n(S'touch canary'\ntR.") + b"\x85R.",
    "opcode OBJ": b"\x80\x02(c__builtin__\nlist\no.",
    "opcode INST": b"(i__builtin__\nlist\n.",
    "opcode NEWOBJ": b"\x80\x02c__builtin__\nlist\n)\x81.",
    "opcode NEWOBJ_EX": b"\x80\x04c__builtin__\nlist\n)}\x92.",
    "a call of a number": b"\x80\x02K\x01)R.",
    "a call of a text": b"\x80\x02" + text("os.system") + b")R.",
    "a call with a list": b"\x80\x02c__builtin__\nset\n]R.",
    "a call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "a call of a class that is only named": b"\x80\x02c__builtin__\nint\n)R.",
    "bytes by count": b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "bytes by count again": b"\x80\x02c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R.",
    "a list of a range": b"\x80\x02c__builtin__\nlist\nc__builtin__\nxrange\nJ\xff\xff\xff\x7f\x85R\x85R.",
    "a set of unhashables": b"\x80\x02c__builtin__\nset\n](]]e\x85R.",
    "an odd codec": b"\x80\x02c_codecs\nencode\n" + text("x") + text("zip") + b"\x86R.",
    "a codec that is a dict": b"\x80\x02c_codecs\nencode\n" + text("x") + b"}\x86R.",
    "a state of a class": b"\x80\x02c__builtin__\nlist\n}" + text("append") + b"Ns" + b"b.",
    "a state of a list": b"\x80\x02]}b.",
    "a method overwritten": b"\x80\x02ccollections\nOrderedDict\n)R}" + text("items") + b"Nsb.",
    "an attribute that is no text": b"\x80\x02ccollections\nOrderedDict\n)R}K\x01Nsb.",
    "items of a list": b"\x80\x02]K\x00K\x01s.",
    "items of a set": b"\x80\x04\x8f(K\x00K\x01u.",
    "an odd number of items": b"\x80\x02}(K\x00u.",
    "an element of a dict": b"\x80\x02}K\x01a.",
    "elements added to a list": b"\x80\x04](K\x01\x90.",
    "a list as a key": b"\x80\x02}]Ns.",
    "a list in a key": b"\x80\x02}]\x85Ns.",
    "a list in a frozenset": b"\x80\x04(]\x91.",
    "a default factory of a function": b"\x80\x02ccollections\ndefaultdict\nc_codecs\nencode\n\x85R.",
    "a default factory of a dict": b"\x80\x02ccollections\ndefaultdict\n}\x85R.",
    "a name that is a number": b"\x80\x04K\x01K\x02\x93.",
    "a name with dots": b"\x80\x04" + text("builtins") + text("list.append") + b"\x93.",
    "a name without letters": b"\x80\x04" + text("") + text("") + b"\x93.",
    "a name with a NUL": b"\x80\x04" + text("os\0") + text("system") + b"\x93.",
    "a name that goes on": b"\x80\x02c" + b"a" * 100_000,
    "a long name": b"\x80\x04" + text("a" * 5000) + text("b") + b"\x93.",
    "a name of a dunder": b"\x80\x02c__builtin__\n__import__\n.",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "a dict that holds itself": b"\x80\x02}q\x00K\x01h\x00s.",
    "a dict that holds itself by a tuple": b"\x80\x02}q\x00K\x01h\x00\x85s.",
    "lists in lists": b"\x80\x02" + b"](" * 5000 + b"e" * 5000 + b".",
    "tuples in tuples": b"\x80\x02)" + b"\x85" * 100_000 + b".",
    "a deep key": b"\x80\x02})" + b"\x85" * 100_000 + b"Ns.",
    "a NumPy array without values": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n"
    b"cnumpy\nndarray\nK\x00\x85" + text("b") + b"\x87R.",
    "a NumPy array of a number": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nNNN\x87R.",
    "a NumPy dtype that runs": b"\x80\x02cnumpy\ndtype\n" + text("__import__('os')") + b"\x89\x88\x87R.",
    "a NumPy array of objects": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
    + text("b")
    + b"\x87R(K\x01K\x01\x85cnumpy\ndtype\n"
    + text("O8")
    + b"\x89\x88\x87R\x89]Natb.",
    "a NumPy scalar of objects": b"\x80\x02cnumpy\ndtype\n" + text("O8") + b"\x89\x88\x87R.",
    "a tensor without a storage": b"\x80\x02ctorch._utils\n_rebuild_tensor\n(NK\x00))tR.",
    "a tensor with too few arguments": b"\x80\x02ctorch._utils\n_rebuild_tensor\n)R.",
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_pickles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    assert refusal(HOSTILE[name])
    assert time.process_time() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    assert list(tmp_path.iterdir()) == []


def test_an_extension_that_is_registered_is_refused_too() -> None:
    copyreg.add_extension("os", "system", 0x7F)
    try:
        assert "opcode" in refusal(b"\x80\x02\x82\x7f.")
    finally:
        copyreg.remove_extension("os", "system", 0x7F)


def bombs() -> Iterator[tuple[str, bytes]]:
    laughs = b"\x80\x02]q\x00"
    for n in range(30):
        laughs += b"](" + b"h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1])
    yield "lists of lists twice", _wrapped(laughs)
    big = b"\x80\x02" + text("x" * 500_000) + b"q\x00c_codecs\nencode\nq\x01]q\x02("
    yield "copies of a text", _wrapped(big + b"h\x01h\x00\x85R" * 2000 + b"e")
    numbers = b"\x80\x02](" + b"K\x01" * 200_000 + b"eq\x00c__builtin__\nlist\nq\x01]q\x02("
    yield "copies of a list", _wrapped(numbers + b"h\x01h\x00\x85R" * 2000 + b"e")
    key = b"\x80\x02)q\x00"
    for n in range(40):
        key += b"(" + (b"h" + bytes([n])) * 10 + b"tq" + bytes([n + 1])
    yield "a key of tuples ten times", _wrapped(key + b"}h\x28Ns")

    yield (
        "the same list appended to a list",
        _wrapped(b"\x80\x02](" + b"K\x01" * 100_000 + b"eq\x00](" + b"h\x00" * 100_000 + b"e"),
    )
    yield "namespaces of namespaces twice", _wrapped(_nested_namespaces(40))
    for name, body in TALL.items():
        yield name, b"\x80\x04" + body * (3_000_000 // len(body)) + b"."


# What makes far more of each byte than it is.
TALL = {
    "lists beside lists": b"]",
    "sets beside sets": b"\x8f",
    "marks on marks": b"(",
    "dicts in the memo": b"}\x94",
    "one value in the memo again and again": b"N" + b"\x94" * 99,
    "tuples of tuples": b")\x85",
}


def _nested_namespaces(depth: int) -> bytes:
    made = b"\x80\x02cargparse\nNamespace\nq\xff)\x81q\x00"
    for n in range(depth):
        twice = text("a") + b"h" + bytes([n]) + text("b") + b"h" + bytes([n])
        made += b"h\xff)\x81}(" + twice + b"ubq" + bytes([n + 1])
    return made


def _wrapped(stack: bytes) -> bytes:
    """All that is on the stack as one tuple."""
    return stack[:2] + b"(" + stack[2:] + b"t."


@pytest.mark.parametrize("name", [name for name, _ in bombs()])
def test_bombs_do_not_go_off(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    assert refusal(dict(bombs())[name])
    assert time.process_time() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_a_small_archive_does_not_unpack_to_a_large_pickle(tmp_path: Path) -> None:
    for body, said in ((b"]" * 90_000_000, "unpacks to 90,000,0"), (b"]" * 16_000_000, "more containers than")):
        with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("x/data.pkl", b"\x80\x02" + body + b".")
        with pytest.raises(TconvError, match=said):
            read_pt(tmp_path / "x.pt")


@pytest.mark.parametrize("protocol", [2, 4])
def test_many_small_containers_are_read(protocol: int) -> None:
    value = [[n, (n, n + 1), {}] for n in range(200_000)]  # more than a million containers and memos
    assert loads(pickle.dumps(value, protocol)) == value


def test_what_is_shared_may_be_visited_again() -> None:
    shared = [1, 2, 3]
    assert loads(pickle.dumps([shared, shared, {"a": shared}], 2)) == [[1, 2, 3], [1, 2, 3], {"a": [1, 2, 3]}]
