"""PARITY.md, made of what other libraries were seen to make: ``python -m tests.parity_table`` writes it anew."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from tests.peers.ours import largest
from tests.peers.references import PHOTOS, REFERENCES, Reference

PATH = Path(__file__).resolve().parents[1] / "PARITY.md"

HEAD = """# Parity

How far what tconv makes is from what the libraries make whose preprocessing a pipeline names. This page is made of
arrays that those libraries wrote down (`python -m tests.parity_table`), and a test fails where it is not true. The
pictures are {photos} of `examples/photos`; opacity is dropped, as the libraries do (`--alpha drop`).

| tconv | in place of | largest difference | because |
|---|---|---|---|
{rows}

For scale: one level of 255 is 0.0039 in 0…1, 0.0078 in -1…1, and up to 0.0175 in ImageNet's units.

Checkpoints: `half` and `bf16` are bit for bit `module.half()` and `module.bfloat16()`; `half-keep-norms` is those with
the normalization layers as they were; `int8-weights` is
`torch.quantize_per_channel` but for ties. Tests compare with PyTorch.

`tests/peers` has the code of each library. Keras and TensorFlow come with `pip install '.[all,test]'`, and a test
compares with them as they are installed, every value. For torchvision, which brings CUDA along, and transformers the
arrays were written down (`python -m tests.peers.make_expected torchvision`); where they are installed,
`pytest -m peers` compares with them too.
"""


def render() -> str:
    """The page, from what tconv makes now."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        rows = [
            _row(reference, max(largest(library, reference, Path(folder)).values()))
            for library, references in REFERENCES.items()
            for reference in references
        ]
    return HEAD.format(photos=", ".join(PHOTOS), rows="\n".join(rows))


def _row(reference: Reference, apart: float) -> str:
    said = " ".join(word if word.startswith("--") else f"'{word}'" * (" " in word) or word for word in reference.argv)
    said = said.replace("|", r"\|")  # which would end the cell
    shown = f"{apart:.1e}" if apart else "0"
    return f"| `{said}` | {reference.library}: `{reference.code}` | {shown} | {reference.why} |"


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf8")
