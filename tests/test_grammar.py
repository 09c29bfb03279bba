"""What a person types wrongly must be named, and a spec that works be shown."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import grammar, registry


@pytest.mark.parametrize(
    ("text", "culprit", "help_"),
    [
        ("", "empty", "dct:chop=4"),
        ("|", "no stage ''", "dct"),
        ("dkt:chop=4", "'dkt'", "Did you mean 'dct'"),
        ("dct", "needs chop", "'dct:chop=4'"),
        ("dct:chop=9", "chop from 1 to 8", "'dct:chop=4'"),
        ("dct:chop=0", "got 0", "'dct:chop=4'"),
        ("dct:chop=17,block=16", "chop from 1 to 16", "'dct:chop=4'"),
        ("dct:chop=4,block=7", "block=4|8|16|32", "'dct:chop=4'"),
        ("dct:chop=four", "a whole number, got 'four'", "'dct:chop=4'"),
        ("dct:chop=4.0", "a whole number", "'dct:chop=4'"),
        ("dct:chop=4,keep=circle", "square|triangle", "'dct:chop=4'"),
        ("dct:chip=4", "'chip=4'", "Did you mean 'chop'"),
        ("dct:chop", "'chop'", "chop (a whole number)"),
        ("zfp:chop=2,block=8", "block=4", "'zfp:chop=2'"),
        ("cast:dtype=int8", "float16|bfloat16|float32", "cast:dtype=float16"),
        ("affine:bits=9", "from 1 to 8", "affine:bits=8"),
        ("affine:bits=1,symmetric=true", "from 2 to 8", "affine:bits=8"),
        ("affine:symmetric=yes", "true or false", "affine:bits=8"),
        ("affine:bits=8|dct:chop=4", "'dct:chop=4' (a transform) cannot follow", "Try 'dct:chop=4|affine'"),
        ("affine|affine:bits=4", "cannot follow", "Try 'affine'"),
        ("affine|dct:chop=4|affine:bits=4", "cannot follow", "Try 'dct:chop=4|affine'"),
    ],
)
def test_a_bad_spec_is_not_explained(text: str, culprit: str, help_: str) -> None:
    with pytest.raises(laconic.SpecError) as caught:
        laconic.codec(text)
    assert culprit in str(caught.value)
    assert help_ in str(caught.value)
    for suggestion in re.findall(r"Try '([^']+)'", str(caught.value)):
        laconic.codec(suggestion)


@pytest.mark.parametrize("name", registry.names())
def test_the_example_in_an_error_does_not_work(name: str) -> None:
    example = registry.find(name).example
    assert name in example
    assert str(laconic.codec(laconic.codec(example)))


def test_an_option_given_twice_wins_quietly() -> None:
    with pytest.raises(laconic.SpecError, match="twice"):
        laconic.codec("dct:chop=4,chop=5")


def test_spaces_matter() -> None:
    assert laconic.codec(" dct : chop = 4 , block=8 | cast:dtype=float16") == laconic.codec(
        "dct:chop=4|cast:dtype=float16"
    )


@given(st.text(max_size=40))
def test_any_text_crashes_the_parser(text: str) -> None:
    with contextlib.suppress(laconic.SpecError):
        laconic.codec(text)


@given(st.text(alphabet="dctzfp:chop=4,|affine0123456789 ", max_size=40))
def test_nearly_right_text_crashes_the_parser(text: str) -> None:
    try:
        parsed = laconic.codec(text)
    except laconic.SpecError:
        return
    assert laconic.codec(str(parsed)) == parsed


def test_a_changed_default_breaks_old_files() -> None:
    """What a file stores spells every field out, whatever the defaults are today."""
    (stage,) = grammar.parse("dct:chop=4")
    assert stage.text(spell_defaults=True) == "dct:chop=4,block=8,keep=square"
    assert str(stage) == "dct:chop=4"
