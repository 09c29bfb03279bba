"""The demonstration's numbers as rows of text: what the terminal and the page both show."""

from __future__ import annotations

from statistics import mean

from laconic.experiments.demo import Result
from laconic.experiments.denoise import Outcome
from laconic.experiments.rates import Rate

COLUMNS = (
    "codec",
    "ratio",
    "PSNR\ndB",
    "SSIM",
    "encode\nGB/s",
    "decode\nGB/s",
    "test loss\nx 1000",
    "change",
    "raw inputs",
)


def rows(result: Result) -> list[tuple[str, ...]]:
    """A row for training uncompressed, then one for each codec, in the order of `COLUMNS`."""
    rates = {rate.codec: rate for rate in result.rates}
    return [
        (outcome.codec, *_rate(rates.get(outcome.codec)), *_training(result, outcome)) for outcome in result.denoising
    ]


def caption(result: Result) -> str:
    """What the columns hold, in a few lines."""
    seeds = len(result.denoising[0].test)
    return (
        f"Test loss: mean over {seeds} seed{'s' * (seeds > 1)} after {result.settings.steps} steps; change against "
        "uncompressed, and its range over seeds. Raw inputs: the same, where only training data are compressed. "
        "Ratio and GB/s: of float32; every byte counts; speed is a warm median into memory that is there already."
    )


def _rate(rate: Rate | None) -> tuple[str, ...]:
    if rate is None:
        return ("1.00x", "", "", "", "")
    speeds = (f"{rate.encode_gbs:.2f}", f"{rate.decode_gbs:.2f}")
    return (f"{rate.ratio:.2f}x", f"{rate.psnr:.1f}", f"{rate.ssim:.3f}", *speeds)


def _training(result: Result, outcome: Outcome) -> tuple[str, ...]:
    loss = f"{1000 * mean(outcome.test):.3f}"
    if outcome is result.denoising[0]:
        return (loss, "", "")
    return (loss, spread(result.change(outcome)), spread(result.change(outcome, raw=True)))


def spread(percents: list[float]) -> str:
    """
    >>> spread([4.0, 6.0])
    '+5.0% (+4.0 .. +6.0)'
    """
    if len(percents) == 1:
        return f"{percents[0]:+.1f}%"
    return f"{mean(percents):+.1f}% ({min(percents):+.1f} .. {max(percents):+.1f})"
