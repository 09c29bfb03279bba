"""The demonstration as one HTML page that needs nothing from outside: no scripts, no links, pictures inside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from statistics import mean

from laconic.bench import machine
from laconic.experiments import demo_pictures, demo_plots, demo_table, samples
from laconic.experiments.demo import Demo, Result
from laconic.experiments.demo_words import RATE_NOTES, TRAINING_NOTES, WORDS
from laconic.experiments.denoise import DOSE, TEST, TRAIN, Outcome
from laconic.experiments.rates import Rate

HEADLINE = "dct:chop=4"


def render(demo: Demo) -> str:
    """The whole page."""
    body = [
        _head(demo.result),
        "<h2>What it does to pictures</h2>",
        "<p>Full-resolution crops, and under each the error: how far every pixel is off, on one scale for all.</p>",
        *demo_pictures.compressed(demo),
        "<h2>Rate and distortion</h2>",
        "<p>To the right is smaller, up is closer to the original. Each dot is one setting of a codec, "
        "measured on all four pictures; a line joins those that differ in <code>chop</code> alone.</p>",
        _beside(demo_plots.rate_distortion(demo.result), RATE_NOTES),
        "<h2>What it does to training</h2>",
        _task(demo),
        demo_pictures.denoised(demo),
        _plots(demo.result),
        "<h2>All the numbers</h2>",
        _table(demo.result),
        "<h2>What the words mean</h2>",
        _words(),
        "<h2>How this was measured</h2>",
        _method(demo.result),
    ]
    style = files("laconic.experiments").joinpath("demo_page.css").read_text()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>laconic: the demonstration</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n{chr(10).join(body)}\n</body>\n</html>\n"
    )


def _head(result: Result) -> str:
    rate, outcome = _headline(result)
    facts = {
        f"smaller, with {rate.codec}": f"{rate.ratio:.1f}x",
        "PSNR of the pictures": f"{rate.psnr:.1f} dB",
        "compressed, and back": f"{rate.encode_gbs:.1f} / {rate.decode_gbs:.1f} GB/s",
        "test loss after training on it": f"{mean(result.change(outcome)):+.1f}%",
    }
    cards = "".join(f'<div class="card"><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>' for k, v in facts.items())
    return (
        '<header><div class="brand">laconic</div><h1>Say it in fewer bytes</h1>'
        f'<p class="lead">{len(result.rates)} codecs, {len(samples.PICTURES)} photographs, and a small network that '
        f"learns from what the codecs left over. Measured in {result.seconds:.0f} seconds on the machine "
        f'named below.</p><dl class="facts">{cards}</dl></header>'
    )


def _task(demo: Demo) -> str:
    seeds, steps = len(demo.result.denoising[0].test), demo.result.settings.steps
    clean = demo_pictures.card([demo_pictures.image(demo.denoising.clean, "clean")], "clean", "the target")
    return (
        f'<div class="task"><div><p>A network of four convolutions learns to remove the noise of a dim micrograph '
        f"({DOSE} quanta for a white pixel). Patches of {len(TRAIN)} images are its training set, stored noisy and "
        f"compressed; it is judged on {len(TEST)} other images, stored alike, against the clean originals. "
        f"{seeds} seed{'s' * (seeds > 1)}, {steps} steps each: enough to compare codecs, too few to call it trained."
        "</p><p>Below, on one of the new images: what the network of the first seed reads, and what it makes of it."
        f"</p></div>{clean}</div>"
    )


def _plots(result: Result) -> str:
    palette = demo_plots.colours(result)
    legend = "".join(
        f'<li><i style="background:{c}"></i><code>{escape(name)}</code></li>' for name, c in palette.items()
    )
    curves = {"New images": demo_plots.test_curves(result), "Training images": demo_plots.train_curves(result)}
    cards = "".join(f'<div class="card"><h3>{title}, while it learns</h3>{svg}</div>' for title, svg in curves.items())
    outcome = _headline(result)[1]
    raw = (
        f"Compress what the network will read, too. The one that learned from {outcome.codec} and is then fed with "
        f"uncompressed images changes its test loss by {demo_table.spread(result.change(outcome, raw=True))}."
    )
    return (
        f'<ul class="legend">{legend}</ul><div class="plots">{cards}</div>'
        f"<h3>In the end: a dot for each seed, a bar for their mean</h3>"
        f"{_beside(demo_plots.changes(result), (*TRAINING_NOTES, raw))}"
    )


def _headline(result: Result) -> tuple[Rate, Outcome]:
    """The codec that the page begins with."""
    rate = next((rate for rate in result.rates if rate.codec == HEADLINE), result.rates[0])
    return rate, next(outcome for outcome in result.denoising if outcome.codec == rate.codec)


def _beside(drawing: str, notes: Sequence[str]) -> str:
    """A plot, and how to read it."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<div class="plots"><div class="card">{drawing}</div><ul class="notes">{items}</ul></div>'


def _table(result: Result) -> str:
    head = "".join(f"<th>{escape(column).replace(chr(10), '<br>')}</th>" for column in demo_table.COLUMNS)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in demo_table.rows(result))
    return (
        f'<div class="card wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="soft">{escape(demo_table.caption(result))}</p>'
    )


def _cell(text: str) -> str:
    """What stands in brackets goes below, in small."""
    value, bracket, rest = text.partition(" (")
    return f"<td>{escape(value)}{f'<small>{escape(rest[:-1])}</small>' if bracket else ''}</td>"


def _words() -> str:
    return f'<dl class="words">{"".join(_word(*item) for item in WORDS.items())}</dl>'


def _word(word: str, meaning: str) -> str:
    return f'<div class="card"><dt>{escape(word)}</dt><dd>{escape(meaning)}</dd></div>'


def _method(result: Result) -> str:
    seeds = len(result.denoising[0].test)
    return (
        f"<p>{escape(machine.summary(result.machine))}.</p>"
        f"<p>Seeds: {', '.join(map(str, range(seeds)))}. The same numbers are in <code>demo.json</code> beside this "
        f"page. Again: <code>laconic demo --steps {result.settings.steps} --seeds {seeds}</code>; losses repeat on the "
        "same machine and versions, speeds vary with what else it does.</p>"
        '<p class="soft">Pictures: the samples of scikit-image (astronaut: NASA; chelsea: Stefan van der Walt; '
        "coffee: Rachel Michetti; rocket: SpaceX; camera: Lav Varshney).</p>"
    )
