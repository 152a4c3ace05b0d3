"""TIFF's directories: both byte orders, classic and big, and tables that lie."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from tconv.formats.image import tags
from tests.formats.image.made import Tags, photo, saved, tiff

RGB = photo(8, 9)


def first(data: bytes) -> tags.Directory:
    return tags.directories(io.BytesIO(data), False)[0][0]


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders(order: str) -> None:
    data = tiff(RGB, order=order)
    directory = first(data)
    assert (directory.one(tags.WIDTH), directory.one(tags.HEIGHT), directory.tags[tags.BITS]) == (9, 8, (8, 8, 8))
    assert directory.pieces() == [(8, 8 * 9 * 3)]
    assert tags.directories(io.BytesIO(data), True)[1:] == (1, order)


def test_bigtiff_says_the_same_as_classic() -> None:
    for data in (saved(RGB, "TIFF"), saved(RGB, "TIFF", big_tiff=True)):
        directory = first(data)
        (offset, count), *_ = directory.pieces()
        assert (directory.one(tags.WIDTH), directory.one(tags.HEIGHT)) == (9, 8)
        assert data[offset : offset + count] == RGB.tobytes()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("kind", "values", "said"), [("H", [6], 6), ("I", [6], 6), ("B", [6], None), ("H", [6, 6], None)]
)
def test_orientation_is_made_one_and_nothing_else(kind: str, values: list[int], said: int | None, order: str) -> None:
    more: Tags = [(tags.ORIENTATION, kind, values)]
    data = tiff(RGB, order=order, more=more)
    found, _, _ = tags.directories(io.BytesIO(data), True)
    ((at, turned),) = found[0].turned.items()
    assert turned == said
    changed = tags.upright(data, found)
    assert first(changed).turned == {at: 1}
    assert (changed[:at], changed[at + 12 :]) == (data[:at], data[at + 12 :])


def test_orientation_of_a_bigtiff_is_made_one() -> None:
    data = saved(RGB, "TIFF", big_tiff=True, tiffinfo={274: 6})
    found, _, _ = tags.directories(io.BytesIO(data), True)
    assert list(found[0].turned.values()) == [6]
    assert list(first(tags.upright(data, found)).turned.values()) == [1]


def test_a_missing_tag_has_its_default_or_is_an_error() -> None:
    directory = first(tiff(RGB))
    assert directory.one(tags.PLANAR, 1) == 1
    with pytest.raises(ValueError, match="tag 284 is missing"):
        directory.one(tags.PLANAR)


@pytest.mark.parametrize("size", range(0, len(tiff(RGB)), 7))
def test_a_file_cut_anywhere_before_its_directory_is_noticed(size: int) -> None:
    with pytest.raises((EOFError, KeyError, struct.error)):
        first(tiff(RGB)[:size])


def test_many_directories_may_not_share_one_huge_table() -> None:
    """Each of them would cost as much as the whole file."""
    table = 4000
    one = struct.pack("<HHHII", 1, tags.STRIP_OFFSETS, 4, table // 4, 8)
    data = b"II*\0" + struct.pack("<I", 8 + table) + bytes(table)
    for n in range(100):
        data += one + struct.pack("<I", 0 if n == 99 else len(data) + len(one) + 4)
    with pytest.raises(ValueError, match="more than fit into the file"):
        tags.directories(io.BytesIO(data), True)
    assert tags.directories(io.BytesIO(data), False)[1] == 100


def test_numbers_of_any_size_are_only_read_if_the_file_has_them() -> None:
    data = tiff(np.zeros((1, 1, 1), np.uint8), more=[(tags.BITS, "H", [8] * 100)])
    assert len(first(data).tags[tags.BITS]) == 100
    at = data.index(struct.pack("<HHI", tags.BITS, 3, 100))
    with pytest.raises(ValueError, match="claims 2147483648 values"):
        first(data[: at + 4] + struct.pack("<I", 1 << 31) + data[at + 8 :])
