"""Files of labels as people write them, and as nobody should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tconv.errors import TconvError
from tconv.label_file import read

IMAGES = {"a.png", "b.png", "c.png", "d e.png"}


def rows(path: Path, content: str | bytes, name: str = "labels.csv") -> list[tuple[str, Any]]:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return [(row.path, row.value) for row in read(file, IMAGES.__contains__).rows]


@pytest.mark.parametrize(
    "content",
    [
        "path,label\na.png,3\nb.png,-1\n",
        "a.png,3\nb.png,-1\n",
        "a.png,3\r\n\r\nb.png,-1",
        "\ufefffilename,label\na.png,3\nb.png,-1\n",
        "label;file_name\n3;a.png\n-1;b.png\n",
        "Image\tClass\na.png\t3\nb.png\t-1\n",
        "a.png 3\nb.png -1\n",
        "a.png|3\nb.png|-1\n",
        '"path", "label"\n"a.png", "3"\n"b.png", -1\n',
        "width,filename,height,class\n10,a.png,20,3\n10,b.png,20,-1\n",
    ],
)
def test_csv_with_a_header_or_without_and_with_any_delimiter(tmp_path: Path, content: str) -> None:
    found = rows(tmp_path, content)
    assert found == [("a.png", 3), ("b.png", -1)]
    assert [type(value) for _, value in found] == [int, int]


def test_a_path_may_hold_what_is_no_delimiter(tmp_path: Path) -> None:
    assert rows(tmp_path, "d e.png,1\na.png,2\n") == [("d e.png", 1), ("a.png", 2)]
    assert rows(tmp_path, '"d, e.png",x\na.png,y\n') == [("d, e.png", "x"), ("a.png", "y")]


def test_columns_without_a_name_are_not_those_of_one(tmp_path: Path) -> None:
    assert rows(tmp_path, ",path,label,\n0,a.png,3,\n1,b.png,-1,\n") == [("a.png", 3), ("b.png", -1)]


def test_columns_that_are_not_used_are_told(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("filename,width,class\na.png,10,cat\n")
    assert read(file, IMAGES.__contains__).notes == ("of its columns class is the label; width are not used",)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "+2", "-3", "0"], [1, 2, -3, 0]),
        (["1", "2.5", "1e-3", ".5", "-7."], [1, 2.5, 0.001, 0.5, -7.0]),
        (["007", "10"], ["007", "10"]),
        (["cat", "dog"], ["cat", "dog"]),
        (["true", "false"], ["true", "false"]),
        (["1.0", "2.0"], [1.0, 2.0]),
    ],
)
def test_all_cells_of_a_column_decide_what_they_are(tmp_path: Path, cells: list[str], values: list[Any]) -> None:
    content = "path,label\n" + "".join(f"{n}.png,{cell}\n" for n, cell in enumerate(cells))
    found = [value for _, value in rows(tmp_path, content)]
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.ndjson", "labels.txt"])
def test_json_lines_say_what_their_values_are(tmp_path: Path, name: str) -> None:
    content = (
        '{"path": "a.png", "label": 7}\n\n{"file_name": "b.png", "category": "7"}\r\n'
        '{"label": [1, 0.5], "path": "c.png", "width": 3}\n{"path": "d e.png", "label": [[1, 2], [3, 4]]}\n'
        '{"path": "e.png", "label": true}'
    )
    found = rows(tmp_path, content, name)
    assert found == [
        ("a.png", 7), ("b.png", "7"), ("c.png", [1, 0.5]), ("d e.png", [[1, 2], [3, 4]]), ("e.png", 1)
    ]  # fmt: skip
    assert type(found[-1][1]) is int


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a.png,1\nb.png,\xff\n", "is no text in UTF-8: byte 14 is not; save it as UTF-8"),
        ("a.png,1\n".encode("utf-16"), "is no text in UTF-8"),
        (b"a.png,1\0\n", "is no text in UTF-8: it holds NUL bytes"),
        (b"", "holds no label"),
        (b"path,label\n", "holds no label"),
        (b"\n \n", "holds no label"),
        (b"a.png\nb.png\n", "no delimiter makes columns of it"),
        (b"a.png,1\nb.png,\n", "line 2: the label is missing"),
        (b"a.png,1\n,2\n", "line 2: the path is missing"),
        (b"a.png,1\nb.png,n/a\n", r"some labels are numbers \(1\) and others are text \(n/a\); JSON Lines say"),
        (b"a.png,1,2\nb.png,3,4\n", "line 1: 3 columns, and no header that says which is the path"),
        (b"path,x,y2\na.png,3,4\n", "line 1: no column is called label: its columns are x, y2"),
        (b"path,label,label\na.png,1,2\n", "several columns have one name: 'label', 'label'; rename all but one"),
        (b"path,label,Label \na.png,1,2\n", "line 1: several columns have one name: 'label', 'Label '"),
        (b"path;path;label\na.png;b.png;2\n", "line 1: several columns have one name: 'path', 'path'"),
        (b"path,path\na.png,2\n", "line 1: several columns have one name: 'path', 'path'"),
        (b"\npath,note,label,note\na.png,x,2,y\n", "line 2: several columns have one name: 'note', 'note'"),
        (b'{"path": "a.png", "Path": "b.png", "label": 1}', "line 1: several columns have one name: 'path', 'Path'"),
        (b'{"path": "a.png", "label": 1, "LABEL": 2}', "line 1: several columns have one name: 'label', 'LABEL'"),
        (b"path,label\n" + b"a.png,1\n" * 30 + b"b.png,1,2\n", "line 32: 3 columns, and 2 in the first line"),
        (b"a.png," + b"9" * 30, "the label 9+… does not fit int64"),
        (b'a.png,1\n"b.png,2\n', "broken CSV|no delimiter"),
        (b"a.png," + b"x" * 200_000, "broken CSV|no delimiter"),
        (b'{"path": "a.png"}', "line 1: no column is called label: it has no columns"),
        (b'{"path": "a.png", "label": null}', "line 1: null is no label; a label is a number, a text"),
        (b'{"path": "a.png", "label": {}}', "line 1: {} is no label"),
        (b'{"path": "a.png", "label": ["x"]}', r"line 1: \['x'\] is no label"),
        (b'{"path": "a.png", "label": ""}', "line 1: '' is no label"),
        (b'{"path": "a.png", "label": "a\\u0000"}', "line 1: .* is no label"),
        (b'{"path": "a.png", "label": NaN}', "line 1: NaN is no JSON"),
        (b'{"path": 3, "label": 3}', "line 1: 'path' is no path"),
        (b'{"path": "a.png", "label": 1, "label": 2}', "line 1: 'label' is there twice"),
        (b'{"path": "a.png", "label": 1}\n[1]\n', "line 2: not a JSON object"),
        (b'{"path": "a.png", "label": 1}\nhello\n', "line 2: not JSON at character 0"),
        (b'{"path": "a.png", "label": ' + b"[" * 100_000, "line 1: "),
        (b'{"path": "a.png", "label": ' + b"[" * 500 + b"1" + b"]" * 500 + b"}", "line 1: .* is no label"),
        (b'{"path": "a.png", "label": ' + b"9" * 10_000 + b"}", "line 1: a number too long"),
    ],
)
def test_what_is_no_file_of_labels_is_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(TconvError, match=said) as caught:
        rows(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path}/labels.csv: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_is_no_file_is_refused_unread(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path, "is no file"),
        (tmp_path / "gone.csv", "No such file"),
        (Path("/dev/zero"), "no file"),
    ):
        with pytest.raises(TconvError, match=said):
            read(path, IMAGES.__contains__)


def test_more_than_any_file_of_labels_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.csv").open("wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(TconvError, match="is larger than 268,435,456 bytes, so it is no file of labels"):
        read(tmp_path / "huge.csv", IMAGES.__contains__)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text('{}[]",:;\n \\pathlbe01', max_size=80).map(str.encode)))
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    try:
        found = rows(tmp_path, content)
    except TconvError as problem:
        assert "labels.csv" in str(problem)  # noqa: PT017  # either outcome is fine, and this is what one must say
    else:
        assert found
