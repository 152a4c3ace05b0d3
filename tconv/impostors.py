"""What a file is that is not what its name says: a pointer, the error page of a server, something still packed."""

from __future__ import annotations

import json
import re

from tconv.errors import TconvError

HEAD = 4096  # bytes of a file that tell
_AGAIN = "download it again, by the link to the file itself"
_SHOWN = 60  # characters of a text that are told

_PACKED = {
    b"\x1f\x8b": ("gzip", "gzip -d"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -d"),
    b"\xfd7zXZ\0": ("xz", "xz -d"),
    b"BZh": ("bzip2", "bzip2 -d"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"Rar!\x1a\x07": ("RAR", "unrar x"),
}
_TAR = slice(257, 262)  # where an archive says "ustar"


def recognize(head: bytes, claims: bool) -> TconvError | None:
    """Why a file that begins so is of no use, and what to do; None where nothing is known.

    Whoever asks has found that it is none of the formats that tconv knows by their first bytes. ``claims``: its name
    says that it is one of them, so that any text is out of place.
    """
    for magic, (name, command) in _PACKED.items():
        if head.startswith(magic):
            return TconvError(f"is packed by {name}", remedy=f"unpack it first: {command}")
    if head[_TAR] == b"ustar":
        return TconvError(
            "a tar archive",
            remedy="unpack it first: tar -xf; what PyTorch before 0.1.10 saved, load with PyTorch and save again",
        )
    if head and not head.strip(b"\0"):
        return TconvError("begins with nothing but zeros, as an unfinished download does", remedy="download it again")
    text = _text(head)
    return (_pointer(text) or _page(text) or (_words(text) if claims else None)) if text else None


def _pointer(text: str) -> TconvError | None:
    """What version control leaves in the place of a large file until it is asked for."""
    if text.startswith("version https://git-lfs.github.com/spec/"):
        size = re.search(r"^size (\d{1,15})$", text, re.MULTILINE)
        bytes_ = f" ({int(size[1]):,} bytes)" if size else ""
        return TconvError(f"a Git LFS pointer in the place of the file{bytes_}", remedy="git lfs pull fetches the file")
    if text.startswith("/annex/objects/"):
        return TconvError("a git-annex pointer in the place of the file", remedy="git annex get fetches the file")
    return None


def _page(text: str) -> TconvError | None:
    """What a server sends to people who are to see why there is no file."""
    if re.match(r"(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", text, re.IGNORECASE | re.DOTALL):
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        return TconvError(f"an HTML page{_shown(title[1] if title else '')} in the place of the file", remedy=_AGAIN)
    return None


def _words(text: str) -> TconvError:
    """What a server sends to programs."""
    if text.startswith(("<?xml", "<Error>")):
        code = re.search(r"<(?:Code|Message)>([^<]*)", text)
        return TconvError(f"an XML text{_shown(code[1] if code else '')} in the place of the file", remedy=_AGAIN)
    if text[0] in "{[":
        return TconvError(f"a JSON text{_shown(_message(text))} in the place of the file", remedy=_AGAIN)
    return TconvError(f"a text{_shown(text)} in the place of the file", remedy=_AGAIN)


def _text(head: bytes) -> str:
    """The head as text, or nothing if it is none; its last character may be cut off."""
    try:
        text = head.decode("utf-8-sig", "strict" if len(head) < HEAD else "ignore")
    except UnicodeDecodeError:
        return ""
    return text.strip() if all(c.isprintable() or c.isspace() for c in text) else ""


def _message(text: str) -> str:
    """What the error of a web service says, or else how it begins."""
    try:
        error = json.loads(text)
        error = error.get("error") or error.get("message") or error.get("detail")
    except (ValueError, AttributeError, RecursionError):
        return text
    return error if isinstance(error, str) else text


def _shown(text: str) -> str:
    line = " ".join(text.split())
    if not line:
        return ""
    return f" ({line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'})"
