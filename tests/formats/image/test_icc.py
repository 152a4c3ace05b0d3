"""ICC profiles: which are sRGB or plain grey, and what the others are called."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from tconv.formats.image.icc import unusual
from tests.formats.image.made import P3, SRGB, curve, profile
from tests.shared_data import shared

PARAMETRIC = b"para" + bytes(4) + struct.pack(
    ">HH5i", 3, 0, *(round(65536 * n) for n in (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045))
)  # fmt: skip


@pytest.mark.parametrize(
    "gamma", [curve(2.2), PARAMETRIC, curve(*(round(65535 * (i / 1023) ** 2.2) for i in range(1024)))]
)
def test_srgb_is_known_by_its_numbers(gamma: bytes) -> None:
    assert unusual(profile(SRGB, gamma, "anything")) == ""


@pytest.mark.parametrize("gamma", [curve(1.8), curve(2.6), curve(), curve(0, 65535)])
def test_the_primaries_alone_do_not_make_srgb(gamma: bytes) -> None:
    assert unusual(profile(SRGB, gamma, "odd")) == "odd"


def test_other_primaries_have_a_name() -> None:
    assert unusual(profile(P3, PARAMETRIC, "Display P3")) == "Display P3"
    assert unusual(profile(P3, PARAMETRIC, "Display P3", version=4)) == "Display P3"
    assert unusual(profile(P3, PARAMETRIC, "")) == "an unnamed RGB space"
    assert unusual(profile(P3, PARAMETRIC, "a\nb" + 100 * "c")) == "a b" + 57 * "c"


@pytest.mark.parametrize(("gamma", "said"), [(2.2, ""), (1.8, ""), (2.4, ""), (1.0, "grey"), (3.0, "grey")])
def test_grey_of_a_plain_gamma_is_nothing_unusual(gamma: float, said: str) -> None:
    assert unusual(profile({}, curve(gamma), "grey", space="GRAY")) == said


def test_inks_are_always_unusual() -> None:
    assert unusual(profile({}, curve(2.2), "FOGRA39", space="CMYK")) == "FOGRA39"


def test_the_profiles_of_littlecms() -> None:
    def made(name: str) -> bytes:
        return ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()  # type: ignore[arg-type]  # any of three

    assert unusual(made("sRGB")) == ""
    assert unusual(made("LAB")) == "Lab identity built-in"


@pytest.mark.parametrize(
    ("file", "want"),
    [
        ("python-pillow__Pillow/pil_sample_rgb.jpg", ""),  # the one of Hewlett-Packard, which most files have
        ("python-pillow__Pillow/frame_size.mpo", "Display P3"),
        ("python-pillow__Pillow/truncated_exif_dpi.jpg", "Generic RGB Profile"),
    ],
)
def test_profiles_of_real_files(file: str, want: str) -> None:
    data = shared("images", *file.split("/")).read_bytes()
    found = Image.open(io.BytesIO(data)).info["icc_profile"]
    assert unusual(found) == want
    described = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(found))).strip()
    assert want in ("", described)


def test_no_profile_and_damaged_ones_are_nothing_to_speak_of() -> None:
    whole = profile(P3, PARAMETRIC, "Display P3")
    assert unusual(b"") == ""
    assert unusual(b"junk" * 50) == ""
    assert {unusual(whole[:n]) for n in range(0, len(whole), 7)} <= {"", "Display P3", "an unnamed RGB space"}


@given(st.integers(0, len(profile(P3, PARAMETRIC, "P3")) - 1), st.binary(min_size=1, max_size=8))
def test_any_damage_gives_a_name_or_none(at: int, junk: bytes) -> None:
    whole = bytearray(profile(P3, PARAMETRIC, "P3"))
    whole[at : at + len(junk)] = junk
    assert len(unusual(bytes(whole))) <= 60
