"""The demonstration's pictures as cards of a page: PNGs inside the HTML, each with its error map."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from html import escape

import matplotlib
import torch
from PIL import Image
from torch import Tensor

import laconic
from laconic.experiments import samples
from laconic.experiments.demo import Demo

CROPS = {"astronaut": (36, 62), "chelsea": (60, 20)}
"""The pictures shown, and where in them the crop of `CROP x CROP` begins."""
CROP = 144
_ERRORS = matplotlib.colormaps["magma"]


def compressed(demo: Demo) -> Iterator[str]:
    """A card for each codec: the first picture open, the others folded away."""
    for index, (name, (top, left)) in enumerate(CROPS.items()):
        whole = demo.pictures[list(samples.PICTURES).index(name)]
        restored = {rate.codec: laconic.codec(rate.codec).roundtrip(whole) for rate in demo.result.rates}
        errors = {codec: (x - whole).abs().mean(0) for codec, x in restored.items()}
        worst = max(float(error.quantile(0.995)) for error in errors.values())
        window = (..., slice(top, top + CROP), slice(left, left + CROP))
        original = [image(whole[window], f"{name}, original"), image(_error_map(torch.zeros(CROP, CROP)), "no error")]
        cards = [card(original, "original", "float32, uncompressed")]
        for rate in demo.result.rates:
            images = [
                image(restored[rate.codec][window], f"{name} after {rate.codec}"),
                image(_error_map(errors[rate.codec][window] / worst), f"error of {rate.codec}"),
            ]
            cards.append(card(images, rate.codec, f"{rate.ratio:.1f}x, {rate.psnr:.1f} dB"))
        grid = f'{_scale(worst)}<div class="pictures">{"".join(cards)}</div>'
        yield (
            grid if index == 0 else f"<details><summary>The same for another picture: {name}</summary>{grid}</details>"
        )


def denoised(demo: Demo) -> str:
    """What the network reads, and what it makes of it: a card for each codec."""
    cards = []
    for name, sample in demo.denoising.samples.items():
        images = [image(sample.stored, f"noisy, {name}"), image(sample.cleaned, f"cleaned, {name}")]
        cards.append(card(images, name, "read, and cleaned"))
    return f'<div class="pictures">{"".join(cards)}</div>'


def card(images: list[str], title: str, text: str) -> str:
    """Pictures one under another, and their caption. A long codec breaks between its options."""
    breakable = re.sub("([,|])", r"\1<wbr>", escape(title))
    caption = f"<code>{breakable}</code>{escape(text)}"
    return f'<figure class="card">{"".join(images)}<figcaption>{caption}</figcaption></figure>'


def _scale(worst: float) -> str:
    """The legend of the error maps."""
    colours = ", ".join(matplotlib.colors.to_hex(_ERRORS(i / 8)) for i in range(9))
    return (
        f'<div class="scale">error 0 <span style="background:linear-gradient(90deg, {colours})"></span> '
        f"{worst:.2f} and more, where white is 1 and black 0</div>"
    )


def _error_map(error: Tensor) -> Tensor:
    """Colours `[3, H, W]` for errors from 0 to 1."""
    return torch.from_numpy(_ERRORS(error.clamp(0, 1).numpy())[..., :3]).movedim(-1, 0)


def image(x: Tensor, description: str) -> str:
    """Pixels from 0 to 1, `[H, W]` or `[3, H, W]`, as an image inside the page."""
    pixels = (x.clamp(0, 1) * 255).round().to(torch.uint8)
    pixels = pixels if pixels.dim() == 2 else pixels.movedim(0, -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels.contiguous().numpy()).save(buffer, format="PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(description)}">'
