"""What a TIFF's tags say of its samples (TIFF 6.0), and which decoder knows such ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tconv.errors import TconvError
from tconv.formats.image import tags

if TYPE_CHECKING:
    from tconv.formats.image.tags import Directory

NONE, OLD_JPEG, JPEG, DEFLATE = 1, 6, 7, frozenset((8, 32946))
_OPENCV_COMPRESSION = DEFLATE | {NONE, 5, 32773}  # 5 is LZW, 32773 PackBits
_FLOATING = 3  # the predictor for floats
_PHOTOMETRIC = {0: "white-is-zero grey", 1: "grey", 2: "RGB", 3: "palette", 5: "CMYK", 6: "YCbCr", 8: "CIELAB"}
_KINDS = {1: "uint", 2: "int", 3: "float", 4: "uint"}  # the sample formats; 4 is "undefined"
_OPENCV = frozenset(
    ("uint10", "uint12", "uint14", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
)
_PILLOW = frozenset(("uint16", "int16", "int32", "float32"))  # of one channel


class Layout(NamedTuple):
    """One image: equal ones are decoded alike."""

    width: int
    height: int
    photometric: int
    samples: int
    kind: str  # of a sample
    depth: int  # bits of a sample
    extra: int | None  # what the first sample beyond the colours is
    compression: int
    planar: bool  # whether channels are stored one after the other
    predictor: int

    @property
    def sample(self) -> str:
        return f"{self.kind}{self.depth}"

    @property
    def shallow(self) -> bool:
        return self.depth <= 8 and (self.kind == "uint" or (self.sample == "int8" and self.photometric == 1))

    @property
    def inverted(self) -> bool:
        return self.photometric == 0

    @property
    def by_opencv(self) -> bool:
        colours = (self.photometric, self.samples) in ((0, 1), (1, 1), (2, 3), (2, 4))
        unknown = (self.inverted and self.kind != "uint") or (self.sample, self.predictor) == ("float16", _FLOATING)
        deep = self.sample in _OPENCV and not unknown
        return not self.shallow and colours and deep and self.compression in _OPENCV_COMPRESSION

    @property
    def by_pillow(self) -> bool:
        known = self.sample == "uint16" if self.inverted else self.sample in _PILLOW and self.photometric == 1
        return self.shallow or (known and self.samples == 1)

    def refused(self) -> TconvError:
        colours = _PHOTOMETRIC.get(self.photometric, f"photometric {self.photometric}")
        return TconvError(
            f"a {'planar ' * self.planar}TIFF of {colours} with {self.samples} x {self.sample} a pixel "
            f"(compression {self.compression}), which tconv does not read",
            remedy="save it as grey or RGB of uint8, uint16 or float32",
        )


def layout(directory: Directory) -> Layout:
    samples = directory.one(tags.SAMPLES, 1)
    depths = set(directory.tags.get(tags.BITS, (1,))[:samples])
    kinds = set(directory.tags.get(tags.FORMAT, (1,))[:samples])
    if len(depths) != 1 or len(kinds) != 1:
        raise TconvError("a TIFF whose samples are not of one type", remedy="save its channels as several files")
    kind, extra = _KINDS.get(kinds.pop(), "complex"), directory.tags.get(tags.EXTRA)
    return Layout(
        directory.one(tags.WIDTH), directory.one(tags.HEIGHT), directory.one(tags.PHOTOMETRIC), samples,
        kind, depths.pop(), extra[0] if extra else None, directory.one(tags.COMPRESSION, NONE),
        samples > 1 and directory.one(tags.PLANAR, 1) == 2, directory.one(tags.PREDICTOR, 1),
    )  # fmt: skip
