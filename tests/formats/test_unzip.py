"""Where members lie, against zipfile, and archives that lie about it."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError
from tconv.formats.raw import opened, take
from tconv.formats.unzip import Entry, entries, names, surplus

CONTENTS = {"a": b"alpha" * 100, "b/c": b"", "höhe": b"beta" * 50}


def archive(path: Path, contents: dict[str, bytes] = CONTENTS, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in contents.items():
            made.writestr(name, data)
    return path


def found(path: Path) -> list[Entry]:
    with opened(path) as file:
        return entries(file)


def extra(path: Path) -> int:
    with opened(path) as file:
        return surplus(file)


def refusal(path: Path) -> TconvError:
    with pytest.raises(TconvError) as caught:
        found(path)
    assert caught.value.file == str(path)
    return caught.value


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.dictionaries(NAMES, st.binary(max_size=300)), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_any_archive(tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes], method: int) -> None:
    path = archive(tmp_path_factory.mktemp("unzip") / "x", contents, method)
    with opened(path) as file:
        read = {e.name: take(e.content(file), e.size) for e in entries(file)}
        assert surplus(file) == 0
    with zipfile.ZipFile(path) as other:
        assert read == {name: other.read(name) for name in other.namelist()}


def test_a_comment_belongs_to_the_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "x")
    with zipfile.ZipFile(path, "a") as made:
        made.comment = b"made by hand" * 1000
    assert len(found(path)) == 3
    assert extra(path) == 0


@pytest.mark.parametrize("size", [1, 22, 1000, 65_000])
def test_what_follows_the_archive_is_counted(tmp_path: Path, size: int) -> None:
    path = archive(tmp_path / "x")
    path.write_bytes(path.read_bytes() + b"?" * size)
    assert [e.name for e in found(path)] == list(CONTENTS)
    assert extra(path) == size


def test_so_much_after_it_that_its_end_is_not_found(tmp_path: Path) -> None:
    path = archive(tmp_path / "x")
    path.write_bytes(path.read_bytes() + bytes(70_000))
    assert refusal(path).reason == "truncated: the directory at the end of its zip archive is missing"


def test_an_archive_cut_anywhere(tmp_path: Path) -> None:
    data = archive(tmp_path / "x").read_bytes()
    for size in range(1, len(data)):
        (tmp_path / "y").write_bytes(data[:size])
        assert refusal(tmp_path / "y").remedy == "fetch or write the file again"


def patched(path: Path, signature: bytes, offset: int, layout: str, value: int, which: int = 0) -> Path:
    """The archive with one field of a record changed."""
    data = bytearray(path.read_bytes())
    at = -1
    for _ in range(which + 1):
        at = data.index(signature, at + 1)
    struct.pack_into(layout, data, at + offset, value)
    path.write_bytes(bytes(data))
    return path


def test_two_members_in_one_place(tmp_path: Path) -> None:
    path = patched(archive(tmp_path / "x"), b"PK\1\2", 42, "<I", 0, which=1)
    assert "its bytes are those of another member too" in refusal(path).reason


def test_a_member_in_the_bytes_of_another(tmp_path: Path) -> None:
    inner = archive(tmp_path / "inner").read_bytes()
    path = archive(tmp_path / "x", {"outer": inner, "a": b"x" * 500})
    with zipfile.ZipFile(path) as made:
        start = made.getinfo("outer").header_offset + 30 + len("outer")
    patched(path, b"PK\1\2", 42, "<I", start, which=len(CONTENTS) + 1)
    assert "its bytes are those of another member too" in refusal(path).reason


def test_a_member_that_reaches_into_the_directory(tmp_path: Path) -> None:
    path = archive(tmp_path / "x", {"a": b"x" * 100})
    for field in (20, 24):
        patched(path, b"PK\1\2", field, "<I", 110)
    assert "it ends in the archive's directory" in refusal(path).reason


def test_a_directory_that_names_other_places(tmp_path: Path) -> None:
    path = patched(archive(tmp_path / "x"), b"PK\1\2", 42, "<I", 3)
    assert "not where the archive's directory says" in refusal(path).reason


def test_a_local_header_of_another_name(tmp_path: Path) -> None:
    path = patched(archive(tmp_path / "x"), b"PK\3\4", 30, "<B", ord("z"))
    assert "not where the archive's directory says" in refusal(path).reason


@pytest.mark.parametrize(
    ("offset", "layout", "value"), [(12, "<I", 0xFFFFFFFE), (16, "<I", 0xFFFFFFFE), (12, "<I", 0), (10, "<H", 9)]
)
def test_an_end_that_lies(tmp_path: Path, offset: int, layout: str, value: int) -> None:
    path = patched(archive(tmp_path / "x"), b"PK\5\6", offset, layout, value)
    with opened(path) as file:
        try:
            got = [e.name for e in entries(file)]
        except TconvError:
            return
    assert got in (list(CONTENTS), [])


def test_a_huge_directory_is_not_read(tmp_path: Path) -> None:
    """A file of 300 MB that is empty on the disk, and says that nearly all of it is its directory."""
    size = 300_000_000
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0)
    with (tmp_path / "x").open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(end)
    tracemalloc.start()
    reason = refusal(tmp_path / "x").reason
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason == "a zip archive with a directory of 300,000,000 bytes, and no more than 100,000,000 are read"
    assert peak < 10_000_000


def test_a_huge_directory_of_64_bits_is_not_read(tmp_path: Path) -> None:
    size = 1 << 40
    twin = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
    end = (
        twin
        + struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1)
        + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 2**32 - 1, 0, 0)
    )
    (tmp_path / "x").write_bytes(end)
    assert "a directory of 1,099,511,627,776 bytes" in refusal(tmp_path / "x").reason


@pytest.mark.parametrize("name", ["../../etc/passwd", "/abs", "C:\\x", "..\\x", "a/../../b", "-o", "~"])
def test_names_lead_nowhere(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    (entry,) = found(archive(inside / "x", {name: b"inside"}))
    assert entry.name == name
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["deep", "er", "x"]


def test_the_names_alone(tmp_path: Path) -> None:
    assert names(archive(tmp_path / "x")) == list(CONTENTS)
