from __future__ import annotations

import statistics
import time

import pytest
import torch

from laconic.bench import measure
from laconic.bench.measure import Contender, Effort, Timing, WrongResult, race
from laconic.stage import TensorSpec

CPU = torch.device("cpu")
SPEC = TensorSpec((1, 8, 8), torch.float32)


def contender(name, run, **options):
    return Contender(name, "encode", run, SPEC, "nothing", **options)


@pytest.fixture
def one_run_a_slice(monkeypatch):
    monkeypatch.setattr(measure, "SLICE_SECONDS", 1e-12)


def test_a_wrong_result_is_an_error_and_not_a_number(one_run_a_slice):
    def wrong():
        raise WrongResult("off by one")

    runs = []
    with pytest.raises(WrongResult, match="off by one"):
        race([contender("bad", lambda: runs.append(1), check=wrong)], Effort(0, 100), CPU)
    assert len(runs) == 2, "only the warm-up may run before the check"


def test_contenders_take_turns_so_that_a_slow_moment_meets_all(one_run_a_slice):
    order = []
    race([contender(name, lambda name=name: order.append(name)) for name in "abc"], Effort(0, 4), CPU)
    assert "".join(order) == "aabbcc" + "abc" * 4


def test_rounds_go_on_until_both_time_and_count_are_reached(one_run_a_slice):
    (slow,) = race([contender("slow", lambda: time.sleep(0.01))], Effort(seconds=0.1, rounds=2), CPU)
    assert 3 <= slow.rounds <= 10
    (few,) = race([contender("few", lambda: None)], Effort(seconds=0, rounds=5), CPU)
    assert few.rounds == 5


def test_a_call_shorter_than_the_clock_can_see_is_repeated():
    runs = []
    (timing,) = race([contender("short", lambda: runs.append(1))], Effort(0, 3), CPU)
    assert len(runs) > 100
    assert timing.median < 1e-4, "seconds are those of one run"


def test_one_slow_round_does_not_move_the_median():
    timing = Timing.of([1.0] * 8 + [1000.0])
    assert (timing.q1, timing.median, timing.q3) == (1.0, 1.0, 1.0)
    seconds = [0.4, 0.1, 0.3, 0.2]
    assert Timing.of(seconds).median == statistics.median(seconds)


def test_a_contender_with_its_own_threads_does_not_change_those_of_the_next(one_run_a_slice):
    seen = []
    usual = torch.get_num_threads()
    other = usual + 1

    def note(name):
        return lambda: seen.append((name, torch.get_num_threads()))

    race([contender("usual", note("usual")), contender("other", note("other"), threads=other)], Effort(0, 3), CPU)
    assert set(seen) == {("usual", usual), ("other", other)}
    assert torch.get_num_threads() == usual


def test_threads_come_back_after_a_failure():
    usual = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        race([contender("fails", lambda: 1 / 0, threads=usual + 1)], Effort(0, 1), CPU)
    assert torch.get_num_threads() == usual


def test_a_gpu_is_waited_for_before_the_clock_starts_and_before_it_stops(monkeypatch, one_run_a_slice):
    log = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: log.append("wait"))
    monkeypatch.setattr(measure, "perf_counter", lambda: log.append("clock") or time.perf_counter())
    measure._time(contender("kernel", lambda: log.append("run")), 2, torch.device("cuda"), threads=2)
    to_wake, timed = ["clock", "run", "wait", "clock"], ["clock", "run", "run", "wait", "clock"]
    assert log == ["wait", *to_wake, *timed]
