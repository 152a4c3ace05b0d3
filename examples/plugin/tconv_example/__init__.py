"""What this package brings to tconv. Whoever lists the formats imports this module: it names what is heavy, no more."""

from tconv.registry import Format

FLO = Format(
    "flo",
    "Middlebury optical flow",
    "array",
    (".flo",),
    reader="tconv_example.flo:read",
    writer="tconv_example.flo:FloWriter",
    magic=b"PIEH",
)
