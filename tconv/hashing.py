"""The hash of a file, in bounded memory; OpenSSL, which takes a while to load, is loaded by who needs it."""

from __future__ import annotations

from pathlib import Path


def sha256(path: Path) -> str:
    """In hexadecimal. Raises ``OSError``."""
    import hashlib

    digest = hashlib.sha256()
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def sha256_of(text: str) -> str:
    """That of a text, in hexadecimal."""
    import hashlib

    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
