"""Manifests are read as Kubernetes' own tools read them."""

import time

import pytest

from dovetail.cli.document_limits import MOST_VALUES
from dovetail.cli.yaml_documents import MOST_MERGED, Document, read_documents


def values(text: str) -> list[object]:
    """The values of a stream that has no trouble."""
    documents = list(read_documents(text))
    assert [document.reason for document in documents if document.reason] == []
    return [document.value for document in documents]


def reason(text: str) -> str:
    """Why the only document of a stream cannot be read."""
    (document,) = read_documents(text)
    return document.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0008:06:00.0", "0008:06:00.0"),
        ("12:30:45", "12:30:45"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("yes", True),
        ("y", True),
        ("On", True),
        ("no", False),
        ("N", False),
        ("oFF", "oFF"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("010", 8),
        ("0o10", 8),
        ("08", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("100m", "100m"),
        ("1Gi", "1Gi"),
        ("+", "+"),
        (".", "."),
        ("_1", "_1"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        ("9007199254740993", 9007199254740993),
        ("-9223372036854775808", -9223372036854775808),
        ("-9223372036854775809", -9223372036854775808.0),
        ("1e400", "1e400"),
        ("<<", "<<"),
        ("=", "="),
        ("tRUE", "tRUE"),
        ("0o8", "0o8"),
        ("1_", 1),
        ("1__0", 10),
        ("-010", -8),
        ("0b2", "0b2"),
        ("1e-3", 0.001),
    ],
)
def test_scalars_are_what_kubernetes_makes_of_them(text: str, value: object) -> None:
    """YAML 1.1 without base 60 and timestamps; a float without a fraction is an integer, as in JSON.

    The answers are those of sigs.k8s.io/yaml 1.6.
    """
    assert values(f"key: {text}") == [{"key": value}]
    assert type(values(f"key: {text}")[0]["key"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(
    ("key", "name"), [("8080", "8080"), ("true", "true"), ("1.5", "1.5"), ("'8080'", "8080")]
)
def test_keys_become_strings(key: str, name: str) -> None:
    """As they would in JSON."""
    assert values(f"{key}: x") == [{name: "x"}]


@pytest.mark.parametrize("text", ["? [a]\n: b", "~: b", "? {a: 1}\n: b"])
def test_other_keys_are_refused(text: str) -> None:
    """There is no string for them."""
    assert "a key has to be a string" in reason(text)


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 2\na: 3", "8080: x\n'8080': y", '{"a": 1, "a": 2}', "x: {a: 1, a: 1}"]
)
def test_a_key_that_appears_twice_is_refused(text: str) -> None:
    """The text says two things, in YAML and in JSON."""
    assert "appears twice" in reason(text)


def test_merge_keys_fill_in_what_is_not_said() -> None:
    """What is written out wins, before or behind the merge; merged keys are no repetition."""
    text = "base: &b {x: 1, w: 2}\none:\n  w: 3\n  <<: *b\ntwo:\n  <<: [*b, {z: 4}]\n"
    (value,) = values(text)
    assert value == {"base": {"x": 1, "w": 2}, "one": {"x": 1, "w": 3}, "two": {"x": 1, "w": 2, "z": 4}}


def test_a_mapping_that_merges_may_be_merged_itself() -> None:
    """Wherever it is written: what it overrides is no repetition, what it repeats is one."""
    text = "b: &b {x: 1}\ndeep: {in: {a: &a {<<: *b, x: 2}}}\nc: {<<: *a}\n"
    (value,) = values(text)
    assert value == {"b": {"x": 1}, "deep": {"in": {"a": {"x": 2}}}, "c": {"x": 2}}
    assert "appears twice" in reason(text.replace("x: 2", "x: 2, x: 3"))


def test_documents_are_counted_as_people_count_them() -> None:
    """Comments before the first separator are no document; empty ones hold nothing, but count."""
    text = "# licence\n---\na: 1\n--- # next\nb: 2\n---\n---\n# only words\n---\nc: |\n  ---\n  text\n...\n"
    assert list(read_documents(text)) == [
        Document(1, {"a": 1}),
        Document(2, {"b": 2}),
        Document(5, {"c": "---\ntext\n"}),
    ]


def test_an_end_marker_ends_a_document() -> None:
    """What follows is another one, though no separator says so."""
    assert [document.value for document in read_documents("a: 1\n...\nb: 2\n...\n---\nc: 3\n")] == [
        {"a": 1},
        {"b": 2},
        {"c": 3},
    ]


def test_a_broken_document_does_not_stop_the_others() -> None:
    """Its reason has the line of the file."""
    documents = list(read_documents("a: 1\n---\nb: [\n---\nc: 3\n---\n\td: 4\n"))
    assert [(document.number, document.value) for document in documents if not document.reason] == [
        (1, {"a": 1}),
        (3, {"c": 3}),
    ]
    broken = {document.number: document.reason for document in documents if document.reason}
    assert "line 4" in broken[2]
    assert "line 7" in broken[4]


def test_windows_line_ends_are_line_ends() -> None:
    """Files come from everywhere."""
    assert values("a: 1\r\n---\r\nb: 2\r\n") == [{"a": 1}, {"b": 2}]


def test_json_is_read_as_json() -> None:
    """One value or several behind each other; flow style YAML looks the same and is read as YAML."""
    assert values('{"a": "0008:06:00.0"}\n{"b": 010}'.replace("010", "10")) == [
        {"a": "0008:06:00.0"},
        {"b": 10},
    ]
    assert values('{"a": NaN}') == [{"a": "NaN"}]
    assert values("{a: 1}") == [{"a": 1}]


def test_nothing_is_no_document() -> None:
    """An empty file has nothing wrong with it."""
    assert list(read_documents("")) == []
    assert list(read_documents("# nothing\n")) == []
    assert list(read_documents("---\n---\n")) == []


@pytest.mark.parametrize(
    "text", ["a: !Ref x", "a: !!python/object:os.system x", "a: *nobody", "a: !!set {x}", "a: !!binary eA=="]
)
def test_tags_and_aliases_that_nobody_knows_are_refused(text: str) -> None:
    """Nothing is ever constructed but plain values."""
    assert reason(text) != ""


def test_an_alias_that_contains_itself_is_refused() -> None:
    """It would never end."""
    assert reason("a: &a [1, *a]") == "an alias contains itself"
    assert reason("a: &a {b: {c: *a}}") == "an alias contains itself"


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    """Ten levels of ten aliases stand for ten thousand million values; ten levels of merges for one key."""
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
    began = time.monotonic()
    assert str(MOST_VALUES) in reason("\n".join(lines))
    merges = ["m0: &m0 {k: v}"] + [
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}" for n in range(1, 11)
    ]
    assert values("\n".join(merges)) == [{f"m{n}": {"k": "v"} for n in range(11)}]
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000 + "x", '{"a":' * 100_000, "a: " + "[" * 50_000]
)
def test_depth_is_bounded(text: str) -> None:
    """A document that is nested without end is a broken document."""
    assert reason(text) != ""


def test_a_chain_of_merges_is_refused_at_once() -> None:
    """Each link takes over all keys of the one before: ten thousand links stand for fifty million keys."""
    links = ["m0: &m0 {k0: v}"] + [f"m{n}: &m{n} {{<<: *m{n - 1}, k{n}: v}}" for n in range(1, 10_000)]
    began = time.process_time()
    assert str(MOST_MERGED) in reason("\n".join(links))
    sources = "\n".join(f"s{n}: &s{n} {{k{n}: v}}" for n in range(5000))
    many = ", ".join(f"*s{n}" for n in range(5000))
    assert len(values(f"{sources}\nall: {{<<: [{many}]}}")[0]["all"]) == 5000  # type: ignore[index]
    assert time.process_time() - began < 10


def test_a_large_document_without_aliases_is_none_too_large() -> None:
    """What is written out may be as large as the file."""
    assert len(values("a:\n" + "- {x: '*'}\n" * 3)) == 1
    text = "a: [" + "x, " * (MOST_VALUES + 10) + "'*']"
    assert reason(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [{"b\\ud800": 1}]}',
        '{"a": [{"b": "\\udc00\\ud800"}]}',
        '{"a": {"b": 1e999999}}',
        '{"a": {"b": -1e400}}',
        '{"a": {"b": ' + "9" * 10_000 + "}}",
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_path(text: str) -> None:
    """Half of a surrogate pair, and a number beyond all floats; a pair of halves is a character."""
    assert reason(text).startswith(("a.b", "a[0].b"))
    assert values('{"a": "\\ud83d\\ude00", "b": 99999999999999999999}') == [{"a": "\U0001f600", "b": 1e20}]


def test_numbers_of_any_length_are_read_as_kubernetes_reads_them() -> None:
    """Python alone would refuse the longest, and give integers that nothing else can hold."""
    for text in ("9" * 5000, "0x" + "f" * 300, "0b" + "1" * 5000, "0x_"):
        assert isinstance(values(f"a: {text}")[0]["a"], str | float)  # type: ignore[index]


def test_a_key_that_a_long_object_repeats_is_found_at_once() -> None:
    """The last of a hundred thousand."""
    began = time.process_time()
    pairs = ", ".join(f'"k{n}": 1' for n in range(100_000))
    assert reason(f'{{{pairs}, "k99999": 2}}') == "key 'k99999' appears twice"
    assert time.process_time() - began < 5


def test_files_with_byte_order_marks_can_be_joined() -> None:
    """A mark before a separator belongs to it."""
    assert values("a: 1\n\ufeff---\nb: 2\n") == [{"a": 1}, {"b": 2}]
