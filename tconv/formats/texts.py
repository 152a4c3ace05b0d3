"""Lists of texts in an .npz, as arrays of NumPy's dtype U, which numpy.load gives back without pickle."""

from __future__ import annotations

import io
import math
import re
import sys
import zlib
from collections.abc import Sequence
from io import RawIOBase
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.formats import npy
from tconv.formats.raw import take

if TYPE_CHECKING:
    from tconv.formats.unzip import Entry

LISTS = ("classes", "paths")  # what tconv puts beside labels; other text is no part of data that it knows
MAX_BYTES = 1 << 30


def text_array(texts: Sequence[str]) -> bytes:
    """The .npy that ``numpy.save`` writes of an array of them."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array(texts, np.str_), allow_pickle=False)
    return file.getvalue()


def read_texts(file: RawIOBase, member: Entry) -> tuple[str, ...] | None:
    """The texts of a member that holds a list of them, whole and undamaged; None for anything else."""
    if member.size > MAX_BYTES:
        return None
    try:
        header = npy.header_of(member.content(file), member.size)
        data = take(member.content(file), member.size)
    except TconvError:
        return None
    kind = re.fullmatch(r"([<>])U([0-9]{1,7})", str(header.descr))
    characters = int(kind[2]) if kind else 0
    length = header.start + math.prod(header.shape) * characters * 4
    if kind is None or not characters or len(header.shape) != 1:
        return None
    if length != len(data) or zlib.crc32(data) != member.crc:
        return None
    codes = np.frombuffer(data, f"{kind[1]}u4", offset=header.start)
    if codes.max(initial=0) > sys.maxunicode:
        return None
    return tuple(codes.view(header.descr).tolist())
