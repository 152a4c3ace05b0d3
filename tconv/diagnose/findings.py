"""The table of what doctor knows: each oddity by its test, what becomes of it, and the option that changes that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tconv import registry
from tconv.dtypes import DTYPES

if TYPE_CHECKING:
    from tconv.diagnose.subjects import Subject
    from tconv.errors import TconvError

    # What there is to say of a file that has the oddity (it may be nothing), None of one that has not.
    Test: TypeAlias = Callable[[Subject], str | None]

SMALL = 8  # pixels of a side: fewer are spacers, tracking pixels and accidents
LONG = 4  # so much longer than wide is a strip, of which a square resize leaves little
LOW = 4  # values that fill less than this part of their range look black, or are labels


@dataclass(frozen=True)
class Rule:
    """One oddity. ``does``: what a conversion without options makes of it; ``option``: what changes that."""

    key: str
    title: str
    test: Test
    does: str
    option: str


@dataclass(frozen=True)
class Finding:
    """A rule with the files that it concerns, each with what there is to say of it."""

    key: str
    title: str
    does: str
    option: str
    files: tuple[tuple[Path, str], ...]


def findings(subjects: Sequence[Subject], problems: Sequence[TconvError]) -> list[Finding]:
    """What is odd about images: ``problems`` first, then the rules in their order; what concerns none is left out."""
    refused = tuple((Path(problem.file), problem.reason) for problem in problems)
    does, option = "refused", "--on-bad skip leaves them out"
    found = [Finding("refused", "not convertible", does, option, refused)] if refused else []
    sound = [one for one in subjects if one.problem is None]
    for rule in RULES:
        said = [(one.path, text) for one in sound if (text := rule.test(one)) is not None]
        if said:
            found.append(Finding(rule.key, rule.title, rule.does, rule.option, tuple(said)))
    return found + _unequal(sound)


def _unequal(sound: Sequence[Subject]) -> list[Finding]:
    """What keeps images from becoming one array: several sizes, several dtypes."""
    sizes = {one.path: size_of(one) for one in sound}
    dtypes = {one.path: str(one.spec.dtype) for one in sound if one.spec}
    found = []
    if len(set(sizes.values())) > 1:
        does, option = "each as it is; no one array", "--resize HxW makes them equal"
        found.append(Finding("sizes", "unequal sizes", does, option, _odd_ones(sizes)))
    if len(set(dtypes.values())) > 1:
        does, option = "each as it is; no one array", "--normalize makes all of them floats"
        found.append(Finding("dtypes", "unequal dtypes", does, option, _odd_ones(dtypes)))
    return found


def _odd_ones(said: dict[Path, str]) -> tuple[tuple[Path, str], ...]:
    """All but those that are as most are."""
    ((usual, _),) = Counter(said.values()).most_common(1)
    return tuple((path, text) for path, text in said.items() if text != usual)


def size_of(one: Subject) -> str:
    """Height x width of what it becomes."""
    height, width = sides(one)
    return f"{height}x{width}"


def sides(one: Subject) -> tuple[int, int]:
    """Height and width when it is upright."""
    header = one.header
    turned = (header.orientation or 1) > 4
    return (header.width, header.height) if turned else (header.height, header.width)


# ---------------------------------------------------------------------------------------------- of the header
def _suffix(one: Subject) -> str | None:
    promised = registry.by_suffix(one.path)
    return None if promised in (None, one.input.format) else f"is {one.input.format.title}"


def _turned(one: Subject) -> str | None:
    stated = one.header.orientation
    return None if stated in (None, 1) else f"orientation {stated}"


def _damaged_exif(one: Subject) -> str | None:
    return "" if one.header.orientation is None else None


def _frames(one: Subject) -> str | None:
    return f"{one.header.frames} frames" if one.header.frames > 1 else None


def _alpha(one: Subject) -> str | None:
    if not one.header.alpha:
        return None
    return "opaque everywhere" if one.pixels and one.pixels.opaque else ""


def _palette(one: Subject) -> str | None:
    return "" if one.header.colour == "palette" else None


def _one_bit(one: Subject) -> str | None:
    return "" if one.header.dtype.kind == "bool" else None


def _grey(one: Subject) -> str | None:
    return "" if one.header.colour == "gray" and one.header.dtype.kind != "bool" else None


def _inks(one: Subject) -> str | None:
    return "" if one.header.colour == "cmyk" else None


def _profile(one: Subject) -> str | None:
    return one.header.profile or None


def _deep(one: Subject) -> str | None:
    dtype = one.header.dtype
    if not dtype.is_integer or dtype is DTYPES["uint8"]:
        return None
    return f"{dtype}, white is {one.header.white}" if one.header.white is not None else str(dtype)


def _floats(one: Subject) -> str | None:
    if not one.header.dtype.is_float:
        return None
    seen = one.pixels
    if seen is None:
        return str(one.header.dtype)
    if seen.lowest is None or seen.highest is None:
        return f"{one.header.dtype}, NaN among the values"
    return f"{one.header.dtype}, values {seen.lowest:g}…{seen.highest:g}"


def _small(one: Subject) -> str | None:
    return size_of(one) if min(sides(one)) < SMALL else None


def _long(one: Subject) -> str | None:
    short, long = sorted(sides(one))
    return size_of(one) if short >= SMALL and long > LONG * short else None


# ---------------------------------------------------------------------------------------------- of the pixels
def _low(one: Subject) -> str | None:
    seen, white = one.pixels, one.header.white
    if seen is None or seen.highest is None or white is None or seen.flat or not one.header.dtype.is_integer:
        return None
    return f"up to {seen.highest:g} of {white}" if seen.highest * LOW < white else None


def _flat(one: Subject) -> str | None:
    return f"all {one.pixels.highest:g}" if one.pixels and one.pixels.flat else None


def _grey_in_colour(one: Subject) -> str | None:
    return "" if one.pixels and one.pixels.grey and not one.pixels.flat else None


def _same_bytes(one: Subject) -> str | None:
    return f"as {one.bytes_as}" if one.bytes_as else None


def _same_pixels(one: Subject) -> str | None:
    return f"as {one.pixels_as}" if one.pixels_as else None


RULES = (
    Rule("suffix", "wrong suffix", _suffix, "read as what they are", "rename them"),
    Rule("exif", "EXIF-rotated", _turned, "turned upright", "--no-exif leaves them"),
    Rule("damaged-exif", "damaged EXIF", _damaged_exif, "taken as stored", ""),
    Rule("frames", "several frames", _frames, "the first one is taken", "--frames all"),
    Rule("alpha", "alpha", _alpha, "blended over white", "--alpha black, --alpha drop, --channels rgba"),
    Rule("palette", "palette", _palette, "become their colours", "--palette index"),
    Rule("one-bit", "1-bit", _one_bit, "become RGB of 0 and 255", "--channels keep for bool"),
    Rule("grey", "grey", _grey, "become RGB, R = G = B", "--channels gray, --channels keep"),
    Rule("grey-in-colour", "grey in RGB", _grey_in_colour, "R = G = B as they are", "--channels gray"),
    Rule("cmyk", "CMYK", _inks, "become RGB by a plain formula", "--channels keep for the inks"),
    Rule("profile", "ICC profile", _profile, "it is not applied", "convert them to sRGB before"),
    Rule("deep", "not 8-bit", _deep, "keep their depth", "--step 'scale(uint8)', --normalize"),
    Rule("floats", "floats", _floats, "--normalize has no range", "--range LO,HI"),
    Rule("low", "low values", _low, "--normalize leaves them dark", "--range 0,HI"),
    Rule("flat", "one value only", _flat, "as they are", "--skip GLOB"),
    Rule("small", f"under {SMALL} pixels", _small, "as they are", "--skip GLOB"),
    Rule("long", f"longer than {LONG}:1", _long, "as they are", "--step 'resize(N) | crop(N)'"),
    Rule("same-bytes", "same bytes", _same_bytes, "each is converted", "--skip GLOB"),
    Rule("same-pixels", "same pixels", _same_pixels, "each is converted", "--skip GLOB"),
)
