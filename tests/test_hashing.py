"""The hash of a file, against the standard's own test vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tconv.hashing import sha256


@pytest.mark.parametrize(
    ("data", "digest"),  # FIPS 180-2, appendix B
    [
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (b"a" * 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ],
)
def test_known_answers(data: bytes, digest: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert sha256(tmp_path / "x") == digest
