"""Files that are not what their names say, as people really have them, in one sentence with the way out."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from tconv import impostors, registry
from tconv.errors import TconvError

LFS = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345678
"""


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("sys_info"), io.BytesIO())
    return made.getvalue()


AGAIN = "download it again, by the link to the file itself"
CASES: dict[str, tuple[bytes, str]] = {
    "Git LFS": (
        LFS,
        "a Git LFS pointer in the place of the file (12,345,678 bytes); git lfs pull fetches the file",
    ),
    "an LFS pointer without a size": (LFS[:60], "a Git LFS pointer in the place of the file; git lfs pull fetches"),
    "git-annex": (
        b"/annex/objects/SHA256E-s1--abc.pt\n",
        "a git-annex pointer in the place of the file; git annex get",
    ),
    "HTML": (
        b"\n<!DOCTYPE html>\n<html><head><title>Page not\n found &middot; GitHub</title>",
        f"an HTML page (Page not found &middot; GitHub) in the place of the file; {AGAIN}",
    ),
    "HTML without a title": (b"<html><body>quota</body></html>", f"an HTML page in the place of the file; {AGAIN}"),
    "HTML after a comment": (b"<!-- x -->\n<HTML lang=en>" + b" " * 9000, "an HTML page in the place"),
    "HTML after a byte order mark": (b"\xef\xbb\xbf<!doctype HTML>", "an HTML page in the place"),
    "HTML that is cut in a character": (b"<html>" + "é".encode() * 4000, "an HTML page in the place"),
    "XML of S3": (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>no</Message></Error>',
        f"an XML text (AccessDenied) in the place of the file; {AGAIN}",
    ),
    "JSON": (
        b'{"error":"Repository not found"}',
        f"a JSON text (Repository not found) in the place of the file; {AGAIN}",
    ),
    "JSON of GitHub": (b'{"message": "Not Found", "status": "404"}', "a JSON text (Not Found) in the place"),
    "JSON of another shape": (b'{"error": {"code": 401}}', 'a JSON text ({"error": {"code": 401}}) in the place'),
    "JSON that is cut": (b'{"error": "x', 'a JSON text ({"error": "x) in the place'),
    "JSON that is a list": (b"[" * 5000, "a JSON text (" + "[" * 59 + "…) in the place"),
    "text of Hugging Face": (b"Entry not found", f"a text (Entry not found) in the place of the file; {AGAIN}"),
    "a long text": (b"word " * 2000, "a text (" + ("word " * 20)[:59] + "…) in the place of the file"),
    "text that is not of ASCII": ("schließen".encode(), "a text (schließen) in the place of the file"),
    "zeros": (bytes(5000), "begins with nothing but zeros, as an unfinished download does; download it again"),
    "tar": (tar(), "a tar archive; unpack it first: tar -xf; what PyTorch before 0.1.10 saved, load with PyTorch"),
    "gzip": (gzip.compress(b"x"), "is packed by gzip; unpack it first: gzip -d"),
    "xz": (lzma.compress(b"x"), "is packed by xz; unpack it first: xz -d"),
    "bzip2": (bz2.compress(b"x"), "is packed by bzip2; unpack it first: bzip2 -d"),
    "Zstandard": (b"\x28\xb5\x2f\xfd\x24\1\t\0\0x", "is packed by Zstandard; unpack it first: zstd -d"),
}


@pytest.mark.parametrize("suffix", ["pt", "bin", "safetensors", "npz", "npy", "jpg", "ckpt"])
@pytest.mark.parametrize("case", CASES)
def test_each_is_told_in_one_sentence(tmp_path: Path, case: str, suffix: str) -> None:
    data, said = CASES[case]
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(data)
    with pytest.raises(TconvError) as caught:
        registry.detect(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: {said}")
    assert "\n" not in text


@pytest.mark.parametrize("case", ["JSON", "text of Hugging Face", "XML of S3"])
@pytest.mark.parametrize("name", ["x.txt", "config.json", "README"])
def test_a_text_that_claims_to_be_nothing_else_is_just_of_no_known_format(tmp_path: Path, case: str, name: str) -> None:
    (tmp_path / name).write_bytes(CASES[case][0])
    with pytest.raises(TconvError, match="no known format"):
        registry.detect(tmp_path / name)


def test_a_pointer_is_one_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(LFS)
    with pytest.raises(TconvError, match="Git LFS pointer"):
        registry.detect(tmp_path / "model")


def test_control_characters_of_a_page_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"<html><title>\x1b[2Jowned</title>")
    assert registry.detect(tmp_path / "x.pt").name == "pt"  # whatever it is, it is no text
    (tmp_path / "x.pt").write_bytes("<html><title>\u202eowned</title>".encode())
    assert registry.detect(tmp_path / "x.pt").name == "pt"


@pytest.mark.parametrize("data", [b"", b"\x80\x02N.", b"\xff\xfe\x00", bytes(range(256)), b"\0\0\1"])
def test_what_is_none_of_them(data: bytes) -> None:
    assert impostors.recognize(data, claims=True) is None


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_whole_model_is_for_another_verb(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"\x08\x07\x12\x07pytorch")
    with pytest.raises(TconvError, match=rf"tconv quantize-model .*model\{suffix} makes it int8"):
        registry.detect(path)
