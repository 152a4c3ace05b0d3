"""ICC profiles (ICC.1:2022): whether one says anything else than sRGB, and what it calls its colours."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

_SRGB = {  # its primaries, as XYZ under D50
    b"r": (0.4361, 0.2225, 0.0139),
    b"g": (0.3851, 0.7169, 0.0971),
    b"b": (0.1431, 0.0606, 0.7141),
}
_NEAR = 0.01  # how far primaries and curves of one space differ between those who write profiles
_SRGB_HALF = 0.214  # what the half of a value stands for; 0.218 with the plain gamma of 2.2
_GREYS = (0.16, 0.31)  # the same for grey: any gamma from 1.7 to 2.6
_LONGEST = 60  # characters of a name


@lru_cache(maxsize=8)
def unusual(profile: bytes) -> str:
    """What a profile calls its colours; empty if they are sRGB or grey of a plain gamma, or if it is damaged."""
    try:
        tags = _tags(profile)
        space = profile[16:20].decode("ascii").strip()
        if space == "GRAY":
            return "" if _GREYS[0] <= _half(tags[b"kTRC"]) <= _GREYS[1] else _name(tags, space)
        if space == "RGB" and _is_srgb(tags):
            return ""
        return _name(tags, space)
    except (KeyError, IndexError, ValueError, ArithmeticError, struct.error):
        return ""


def _tags(profile: bytes) -> Mapping[bytes, bytes]:
    (count,) = struct.unpack_from(">I", profile, 128)
    entries = struct.iter_unpack(">4sII", profile[132 : 132 + 12 * count])
    return {kind: profile[at : at + length] for kind, at, length in entries}


def _is_srgb(tags: Mapping[bytes, bytes]) -> bool:
    if b"rXYZ" not in tags:  # made of tables, which only a name tells apart
        return "srgb" in _name(tags, "").lower()
    for letter, primary in _SRGB.items():
        found = struct.unpack_from(">3i", tags[letter + b"XYZ"], 8)
        if any(abs(number / 65536 - wanted) > _NEAR for number, wanted in zip(found, primary, strict=True)):
            return False
        if abs(_half(tags[letter + b"TRC"]) - _SRGB_HALF) > _NEAR:
            return False
    return True


def _half(curve: bytes) -> float:
    """What 0.5 becomes by a curve."""
    if curve[:4] == b"para":
        (kind,) = struct.unpack_from(">H", curve, 8)
        numbers = [n / 65536 for n in struct.unpack_from(f">{(1, 3, 4, 5, 7)[kind]}i", curve, 12)]
        gamma, a, b = numbers[:3] if kind else (numbers[0], 1.0, 0.0)
        offset = {2: 3, 4: 5}.get(kind)
        return float(max(0.0, a * 0.5 + b) ** gamma) + (numbers[offset] if offset else 0)
    if curve[:4] != b"curv":
        raise ValueError("a curve of an unknown kind")
    (count,) = struct.unpack_from(">I", curve, 8)
    if count == 0:
        return 0.5
    if count == 1:
        return float(0.5 ** (struct.unpack_from(">H", curve, 12)[0] / 256))
    at = (count - 1) // 2
    low, high = struct.unpack_from(">2H", curve, 12 + 2 * at)
    return float(low if count % 2 else (low + high) / 2) / 65535


def _name(tags: Mapping[bytes, bytes], space: str) -> str:
    said = tags.get(b"desc", b"")
    if said[:4] == b"desc":
        name = said[12 : 12 + int.from_bytes(said[8:12], "big")].decode("latin1")
    elif said[:4] == b"mluc":
        length, at = struct.unpack_from(">II", said, 20)
        name = said[at : at + length].decode("utf-16-be", "replace")
    else:
        name = ""
    name = " ".join(name.split("\0")[0].split())[:_LONGEST]
    return name or f"an unnamed {space} space"
