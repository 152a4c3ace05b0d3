"""Archives of stored members, as Python's zipfile reads them."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.formats.zip import Member, directory, place


def write(path: Path, members: list[Member], contents: list[bytes]) -> None:
    at, end = directory(members, [zlib.crc32(c) for c in contents])
    data = bytearray(at)
    for member, content in zip(members, contents, strict=True):
        header = member.local_header()
        assert member.header + len(header) == member.start
        data[member.header : member.start] = header
        data[member.start : member.start + len(content)] = content
    path.write_bytes(bytes(data) + end)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=80),
        st.binary(max_size=100),
    )
)
def test_any_members(tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]) -> None:
    path = tmp_path_factory.mktemp("zip") / "x.zip"
    members = place((name, len(content)) for name, content in contents.items())
    write(path, members, list(contents.values()))
    assert all(member.start % 64 == 0 for member in members)
    with zipfile.ZipFile(path) as found:
        assert found.namelist() == list(contents)
        assert [found.read(name) for name in found.namelist()] == list(contents.values())


def test_more_than_65535_members(tmp_path: Path) -> None:
    count = 65_540
    write(tmp_path / "x.zip", place((str(n), 0) for n in range(count)), [b""] * count)
    with zipfile.ZipFile(tmp_path / "x.zip") as found:
        assert found.namelist() == [str(n) for n in range(count)]
        assert found.read(str(count - 1)) == b""
