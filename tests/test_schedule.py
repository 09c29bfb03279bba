"""Schedules: a bound that is looser than was asked for, or that jumps, spoils a training run in silence."""

from __future__ import annotations

import json
import math
import pickle
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import schedule_files
from laconic.errors import FileError, SpecError
from laconic.schedule import DECAYS, EbSchedule, TableBounds

FALLING = ("step", "linear", "log", "cosine")


# Each written down from the paper's formula, with the factor C and t = iteration / until.
def linear(c, t):
    return c + (1 - c) * t


def log(c, t):
    s = 1 - math.log(1 + (math.e - 1) * t)
    return c * (s * (1 - 1 / c) + 1 / c)


def cosine(c, t):
    return 1 + (c - 1) * 0.5 * (1 + math.cos(math.pi * t))


def step(c, t):
    levels = [c - k * (c - 1) / 10 for k in range(11)]
    return levels[sum(t >= k / 10 for k in range(1, 11))]


@pytest.mark.parametrize("formula", [linear, log, cosine, step])
@pytest.mark.parametrize("c", [1, 1.5, 2, 8])
def test_a_multiplier_is_another_than_the_formula_says(formula, c):
    schedule = EbSchedule(formula.__name__, factor=c, until=1000)
    for iteration in (0, 1, 99, 100, 101, 250, 333, 500, 899, 900, 999):
        assert schedule.multiplier(iteration) == pytest.approx(formula(c, iteration / 1000), rel=1e-12)


def test_a_multiplier_is_another_than_was_computed_by_hand():
    at = {name: EbSchedule(name, factor=2, until=65536) for name in DECAYS}
    assert at["linear"].multiplier(16384) == 1.75
    assert at["log"].multiplier(32768) == pytest.approx(1.3798854930417224, rel=1e-12)
    assert at["cosine"].multiplier(32768) == pytest.approx(1.5, rel=1e-12)
    assert [at["step"].multiplier(i) for i in (0, 6553, 6554, 65535)] == [2.0, 2.0, 1.9, 1.1]
    assert at["constant"].multiplier(65535) == 2


@pytest.mark.parametrize("decay", DECAYS)
def test_the_decay_never_ends_or_starts_elsewhere(decay):
    schedule = EbSchedule(decay, factor=3, until=7)
    assert schedule.multiplier(0) == 3
    assert [schedule.multiplier(i) for i in (7, 8, 10**12)] == [1, 1, 1]


@given(st.sampled_from(FALLING), st.floats(1, 100), st.integers(1, 10**6), st.lists(st.integers(0, 2 * 10**6)))
def test_a_bound_grows_while_training_goes_on(decay, factor, until, iterations):
    schedule = EbSchedule(decay, factor, until)
    found = [schedule.multiplier(i) for i in sorted(iterations)]
    assert all(1 <= value <= factor * (1 + 1e-12) for value in found)
    assert all(after <= before for before, after in pairwise(found))


@given(st.integers(1, 10**7))
def test_a_stage_begins_before_its_bound(until):
    schedule = EbSchedule("step", factor=11, until=until)
    for stage in range(11):
        iteration = schedule.at_stage(stage)
        assert iteration == math.ceil(stage * until / 10)
        if until >= 10:
            assert schedule.multiplier(iteration) == pytest.approx(11 - stage)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": "exponential"}, "no decay 'exponential'. There are: step, linear, log, cosine, constant"),
        ({"factor": 0.5}, "factor: expected"),
        ({"factor": math.nan}, "factor: expected"),
        ({"factor": math.inf}, "factor: expected"),
        ({"factor": "2"}, "factor: expected"),
        ({"until": 0}, "until: expected"),
        ({"until": 1.5}, "until: expected"),
        ({"until": True}, "until: expected"),
    ],
)
def test_a_schedule_that_means_nothing_is_made(options, message):
    with pytest.raises(SpecError, match=message):
        EbSchedule(**options)


@pytest.mark.parametrize("iteration", [-1, 1.5, None, True])
def test_an_iteration_that_is_none_has_a_multiplier(iteration):
    with pytest.raises(SpecError, match="iteration: expected"):
        EbSchedule().multiplier(iteration)
    with pytest.raises(SpecError, match="stage: expected"):
        EbSchedule().at_stage(11 if iteration is None else iteration)


BOUNDS = TableBounds(
    base=0.03,
    tighten=0.01,
    loosen=0.05,
    classes={1: "tighten", "05": "loosen", "users": "loosen"},
    schedule=EbSchedule("linear", factor=2, until=100),
)


def test_a_table_gets_the_bound_of_another():
    assert BOUNDS.bound(1, 100) == BOUNDS.bound("table_1", 100) == BOUNDS.bound("1", 100) == 0.01
    assert BOUNDS.bound("table_5", 0) == BOUNDS.bound("users", 0) == 0.1
    assert BOUNDS.bound(2, 50) == pytest.approx(0.045)
    assert TableBounds().bound("any", 0) == 0.03


def test_a_chain_gets_another_bound():
    x = torch.randn(100, 8)
    codec = BOUNDS.codec("bound|huffman", 5, iteration=100)
    assert codec == laconic.codec("bound:rel=0.05|huffman")
    assert (codec.roundtrip(x) - x).abs().max() <= 0.05 * (x.max() - x.min())
    assert BOUNDS.codec("bound:rel=1e-3|huffman", 5, 100) == laconic.codec("bound:rel=1e-3|huffman")
    assert BOUNDS.codec("bound:width=16|bitpack", 1, 100, kind="abs") == laconic.codec(
        "bound:abs=0.01,width=16|bitpack"
    )


def test_bounds_do_not_survive_another_process():
    assert pickle.loads(pickle.dumps(BOUNDS)) == BOUNDS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": 0}, "base: expected a bound above 0"),
        ({"tighten": "0.01"}, "tighten: expected a bound above 0"),
        ({"loosen": math.nan}, "loosen: expected a bound above 0"),
        ({"loosen": 0.01}, "tighten <= base <= loosen"),
        ({"tighten": 0.1}, "tighten <= base <= loosen"),
        ({"classes": {1: "loosen"}}, "table_1 is of the class loosen, which has no bound"),
        ({"classes": {1: "huge"}}, "expected tighten, base, loosen"),
        ({"classes": {1: "base", "table_1": "base"}}, "table_1 is named twice"),
    ],
)
def test_classes_that_cannot_be_meant_are_used(options, message):
    with pytest.raises(SpecError, match=message):
        TableBounds(**options)


def test_a_class_file_says_something_else_when_it_is_read_again(tmp_path):
    path = tmp_path / "classes.json"
    path.write_text(json.dumps(schedule_files.to_json(BOUNDS) | {"analysis": {"rows": 3}}))
    assert TableBounds.from_json(path) == BOUNDS
    path.write_text(json.dumps(schedule_files.to_json(TableBounds())))
    assert TableBounds.from_json(path) == TableBounds()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a class file"),
        ("[]", "expected an object"),
        ("[" * 10**5, "is not a class file"),
        ("{}", "of which tables is needed"),
        ('{"tables": {}, "bounds": 1}', "expected an object of"),
        ('{"tables": [1]}', "tables: expected lists"),
        ('{"tables": {"loosen": 1}}', "tables: expected lists"),
        ('{"loosen": 1, "tables": {"loosen": [1.5]}}', "expected tables by name or number, got 1.5"),
        ('{"loosen": 1, "tables": {"loosen": [1, "table_1"]}}', "table_1 is named twice"),
        ('{"loosen": 1, "tighten": 0.01, "tables": {"loosen": [1], "tighten": [1]}}', "table_1 is named twice"),
        ('{"loosen": 1, "tables": {"loosen": [1], "loosen": [2]}}', "'loosen' stands there twice"),
        ('{"loosen": 1, "tables": {"lose": [1]}}', "expected tighten, base, loosen"),
        ('{"base": "0.03", "tables": {}}', "base: expected a bound"),
        ('{"base": NaN, "tables": {}}', "base: expected a bound"),
        ('{"tables": {}, "schedule": "step"}', "schedule: expected"),
        ('{"tables": {}, "schedule": {"decay": "sudden"}}', "no decay 'sudden'"),
        ('{"tables": {}, "schedule": {"decay": "log", "until": 1e3}}', "until: expected a whole number"),
        ('{"tables": {}, "schedule": {"steps": 3}}', "schedule: expected"),
    ],
)
def test_a_class_file_that_cannot_be_meant_is_read(content, message, tmp_path):
    path = tmp_path / "classes.json"
    path.write_text(content)
    with pytest.raises(SpecError, match=message) as error:
        TableBounds.from_json(path)
    assert "classes.json" in str(error.value)


def test_a_class_file_that_is_not_there_is_a_riddle(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.json"):
        TableBounds.from_json(tmp_path / "nowhere.json")


ARTIFACT = {
    "TIGHTEN_EB_TABLES": "0 9 10",
    "LOOSEN_EB_TABLES": "5,8",
    "TIGHTEN_EB_VALUE": "0.01",
    "LOOSEN_EB_VALUE": "0.05",
    "BASE_ERROR_BOUND": "0.03",
    "EB_CONSTANT": "2",
    "EARLY_STAGE": "65536",
    "DECAY_FUNC": "log",
    "PATH": "elsewhere",
}


def test_the_artifact_is_read_as_something_else():
    bounds = TableBounds.from_environment(ARTIFACT)
    assert bounds == TableBounds(
        base=0.03,
        tighten=0.01,
        loosen=0.05,
        classes={0: "tighten", 9: "tighten", 10: "tighten", 5: "loosen", 8: "loosen"},
        schedule=EbSchedule("log", 2, 65536),
    )
    assert TableBounds.from_environment({}) == TableBounds()
    assert TableBounds.from_environment({"EARLY_STAGE": "100"}).schedule == EbSchedule(until=100)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DECAY_FUNC", "exp", "no decay 'exp'"),
        ("EB_CONSTANT", "two", "EB_CONSTANT: expected a number, got 'two'"),
        ("EARLY_STAGE", "1e5", "EARLY_STAGE: expected a whole number, got '1e5'"),
        ("BASE_ERROR_BOUND", "", "BASE_ERROR_BOUND: expected a number, got ''"),
        ("BASE_ERROR_BOUND", "-1", "base: expected a bound above 0"),
        ("TIGHTEN_EB_TABLES", "0 nine", "TIGHTEN_EB_TABLES: expected the numbers of tables, such as '0 9 10', got"),
        ("TIGHTEN_EB_TABLES", "5", "table_5 is named twice"),
        ("LOOSEN_EB_TABLES", "8 8", "table_8 is named twice"),
    ],
)
def test_a_variable_that_cannot_be_meant_is_read(variable, value, message):
    with pytest.raises(SpecError, match=message):
        TableBounds.from_environment(ARTIFACT | {variable: value})
