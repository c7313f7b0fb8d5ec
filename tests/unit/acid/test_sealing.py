"""A seal is that of one file in one run, and nothing is taken without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.sealing import HEAD_BYTES, KEY_BYTES, RunKey, content_of
from airflow_provider_acid.exceptions import UnauthenticatedError

SECRET = bytes(range(KEY_BYTES))
KEY = RunKey("run1", SECRET)
NAME, CONTENT = "0007.plan.json", b'{"attempt": "a"}'
SEALED = KEY.sealed(NAME, CONTENT)
PLACE = "hdfs://ns1/user/airflow/0007.plan.json"


@given(st.binary(), st.text(), st.text(), st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES))
def test_what_was_sealed_is_opened_as_it_was(content: bytes, run: str, name: str, secret: bytes) -> None:
    key = RunKey(run, secret)
    document = key.sealed(name, content)
    assert key.opened(PLACE, name, document) == content == content_of(document)


@pytest.mark.parametrize(
    ("key", "name", "document"),
    [
        (RunKey("run2", SECRET), NAME, SEALED),
        (RunKey("run1", SECRET[::-1]), NAME, SEALED),
        (KEY, "0008.plan.json", SEALED),
        (KEY, "0007.result.json", SEALED),
        (RunKey("run1", SECRET), NAME, SEALED + b" "),
        (KEY, NAME, SEALED[:-1]),
        (KEY, NAME, SEALED.replace(b'"a"', b'"b"')),
        (KEY, NAME, SEALED[:1].swapcase() + b"0" + SEALED[2:]),
        (KEY, NAME, SEALED[: HEAD_BYTES - 1]),
        (KEY, NAME, SEALED[: HEAD_BYTES - 1] + b" " + CONTENT),
        (KEY, NAME, CONTENT),
        (KEY, NAME, b""),
        (KEY, NAME, b"\n" * 200),
        (KEY, NAME, KEY.seal_of(NAME).encode() + b"\n" + CONTENT),
    ],
    ids=[
        "of another run",
        "by another key",
        "for another item",
        "of another kind",
        "longer",
        "shorter",
        "changed",
        "seal changed",
        "without content",
        "another end of the seal",
        "no seal",
        "empty",
        "lines",
        "seal of nothing",
    ],
)
def test_anything_else_is_refused_by_its_place_and_no_word_of_it_is_repeated(
    key: RunKey, name: str, document: bytes
) -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        key.opened(PLACE, name, document)
    assert str(raised.value).startswith(f"{PLACE}: has not the seal of its run")
    assert "attempt" not in str(raised.value)


@given(st.binary(max_size=300))
def test_no_document_opens_that_was_not_sealed(document: bytes) -> None:
    with pytest.raises(UnauthenticatedError):
        RunKey.new("run1").opened(PLACE, NAME, document)


def test_run_and_name_cannot_be_shifted_into_each_other() -> None:
    assert RunKey('a", "b', SECRET).seal_of("c") != RunKey("a", SECRET).seal_of('b", "c')
    assert RunKey("ab", SECRET).seal_of("c") != RunKey("a", SECRET).seal_of("bc")


def test_every_key_is_new_and_none_is_shown() -> None:
    keys = [RunKey.new("run1") for _ in range(100)]
    assert {len(key.secret) for key in keys} == {KEY_BYTES}
    assert len({key.secret for key in keys}) == 100
    assert repr(KEY) == "RunKey(run='run1')"
