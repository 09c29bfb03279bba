"""Every code block of the README runs, every link leads somewhere, and every table says what was measured.

`python -m tests.test_docs` prints the tables of the block codec from `results/`, and puts those of the rate study
and its figures where the pages have a mark for them: `<!-- rate DATA BOUND -->`, `<!-- rate FIGURE -->`; likewise the
encoders study's: `<!-- encoders choices -->`, `<!-- encoders cut ROWS -->`, `<!-- encoders FIGURE -->`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from laconic.bench.encoders import model
from laconic.bench.encoders import study as encoders_study
from laconic.bench.rate.front import front
from laconic.bench.rate.study import RateStudy, Row, load

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "blocks.json"
GPU_RESULTS = ROOT / "results" / "blocks-h200.json"
RATE_RESULTS = ROOT / "results" / "rate.json"
RATE_MARK = re.compile(r"(<!-- rate (\S+) ?(\S*) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
ENCODERS_RESULTS = ROOT / "results" / "encoders.json"
ENCODERS_MARK = re.compile(r"(<!-- encoders (\S+) ?(\S*) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
ENCODERS_PAGE = ROOT / "docs" / "embeddings.md"
PAGES = [path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")) if path.exists()]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "add-a-stage.md"], ids=lambda p: p.name)
def test_an_example_does_not_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in blocks(page):
        exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_link_leads_nowhere(page: Path) -> None:
    if not (ROOT / "README.md").exists():
        pytest.skip("an installed package has no repository around it")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def floors_table(study: dict[str, Any]) -> str:
    """The floors of the block codec as both pages show them."""
    found = {verdict["name"]: verdict["measured"] for verdict in study["verdicts"]}
    floors = [row for row in study["rows"] if row["section"] == "floors"]
    seconds = {
        (row["name"], chop): row["seconds"] for row in floors for chop in (2, 4, 7) if f"chop={chop}" in row["race"]
    }
    columns = ["speed over copy_", "speed over dense", "time of triangle over square", "time of uint8 over float32"]
    columns += ["speed of 2 threads over 1"]
    lines = ["| | " + " | ".join([*columns, "the same of copy_"]) + " |", "|---" * (len(columns) + 2) + "|"]
    for chop in (2, 4, 7):
        for what in ("encode", "decode"):
            cells = [f"{found[f'chop={chop} {what}: {column}']:.2f}" for column in columns]
            cells.append(f"{seconds['copy_, 1 thread', chop] / seconds['copy_, 2 threads', chop]:.2f}")
            lines.append(f"| chop={chop}, {what} | " + " | ".join(cells) + " |")
    machine = study["machine"]
    lines.append(f"\n{machine['cpu']}, {machine['cores']} cores ({machine['native']}), {machine['date']}.")
    return "\n".join(lines)


@pytest.mark.skipif(not RESULTS.exists(), reason="an installed package has no results beside it")
@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_a_table_says_what_was_not_measured(page: str) -> None:
    assert floors_table(json.loads(RESULTS.read_text())) in (ROOT / page).read_text()


def gpu_table(study: dict[str, Any]) -> str:
    """The block codec on a GPU, and across the link to it."""
    gb_per_s = {(row["section"], row["race"], row["name"], row["what"]): row["gb_per_s"] for row in study["rows"]}
    lines = ["| | laconic | dense | copy_ | with the transfer | transfer of the tensor as it is |", "|---" * 6 + "|"]
    for chop in (2, 4, 7):
        resolution = "resolution", f"100 x 3 x 512 x 512, chop={chop}"
        transfer = "transfer", f"100 x 3 x 256 x 256, chop={chop}"
        for what in ("encode", "decode"):
            keys = [(*resolution, "laconic", what), (*resolution, "dense", what), (*resolution, "copy_", "copy")]
            keys += [(*transfer, "laconic", what), (*transfer, "raw", what)]
            lines.append(f"| chop={chop}, {what} | " + " | ".join(f"{gb_per_s[key]:,.0f}" for key in keys) + " |")
    machine = study["machine"]
    lines.append(f"\n{machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}.")
    return "\n".join(lines)


@pytest.mark.skipif(not GPU_RESULTS.exists(), reason="an installed package has no results beside it")
def test_a_table_says_what_no_gpu_did() -> None:
    assert gpu_table(json.loads(GPU_RESULTS.read_text())) in (ROOT / "docs" / "performance.md").read_text()


def rate_table(study: RateStudy, data: str, bound: float) -> str:
    """Everybody on one data set at one bound, on one thread, the smallest first."""
    cell = study.cell(data, bound, threads=1)
    ahead = {row.name for row in front(cell)}
    lines = ["| | | times smaller | PSNR (dB) | encode (GB/s) | decode (GB/s) |", "|---|---|---|---|---|---|"]
    for row in sorted(cell, key=lambda row: -row.ratio):
        lines.append(f"| {'●' if row.name in ahead else ''} | " + " | ".join(_rate_cells(row)) + " |")
    machine = study.machine
    lines.append(f"\n{machine['cpu']}, one thread ({machine['native']}), {machine['date']}.")
    return "\n".join(lines) + "\n"


def _rate_cells(row: Row) -> list[str]:
    name = row.name.replace("|", "\\|")
    quality = "lossless" if row.psnr is None else f"{row.psnr:.1f}"
    broken = "" if row.over_bound <= 1 else f" ({row.over_bound:.5f} times the bound)"
    speeds = [f"{speed:.2f}" for speed in (row.encode_gb_per_s, row.decode_gb_per_s)]
    return [f"**`{name}`**" if row.is_ours else name + broken, f"{row.ratio:.2f}", quality, *speeds]


def with_rate_results(page: Path) -> str:
    """A page's text, with the tables and figures of the rate study as the results have them."""
    study = load(RATE_RESULTS)
    results = "results" if page.parent == ROOT else "../results"

    def filled(mark: re.Match[str]) -> str:
        data, bound = mark[2], mark[3]
        table = rate_table(study, data, float(bound)) + "\n" if bound else ""
        figure, alt = (f"front-{data}", f"{data}: ratio against speed") if bound else (data, data)
        return f"{mark[1]}{table}![{alt}]({results}/rate-{figure}.svg)\n{mark[4]}"

    return RATE_MARK.sub(filled, page.read_text())


@pytest.mark.skipif(not RATE_RESULTS.exists(), reason="an installed package has no results beside it")
@pytest.mark.parametrize("page", ["README.md", "docs/error-bounded.md"])
def test_a_table_says_what_no_peer_did(page: str) -> None:
    text = (ROOT / page).read_text()
    assert RATE_MARK.search(text)
    assert text == with_rate_results(ROOT / page)


def choices_table(study: encoders_study.EncodersStudy) -> str:
    """Whom to choose for each link, of what is not padded."""
    columns = ["rows at once", "link (GB/s)", "best for all tables", "speed-up", "best for each table", "speed-up"]
    lines = ["| " + " | ".join([*columns, "best peer", "speed-up"]) + " |", "|---" * 8 + "|"]
    for one in model.choices(study):
        if one.pad == 1:
            each = ", ".join(f"{table}: {_code(name)}" for table, name in one.per_table.items())
            peer = "" if one.peer_speed_up is None else f"{one.peer_speed_up:.3g}"
            cells = [str(one.rows), f"{one.link:g}", _code(one.single), f"{one.single_speed_up:.3g}", each]
            cells += [f"{one.per_table_speed_up:.3g}", one.peer or "", peer]
            lines.append("| " + " | ".join(cells) + " |")
    machine = study.machine
    return "\n".join(lines) + f"\n\n{machine['cpu']}, one thread ({machine['native']}), {machine['date']}.\n"


def encoders_table(study: encoders_study.EncodersStudy, rows: int) -> str:
    """Every encoder on slices of so many rows: the ratio of each table, and means."""
    cases, averages = study.cases_of((rows, 1)), model.means(study, (rows, 1))
    ratios = {(row.case, row.name): row.ratio for row in study.rows}
    speed_ups = [f"speed-up at {link:g} GB/s" for link in study.links]
    columns = [
        "",
        *(f"ratio, {case.dump}" for case in cases),
        "ratio, mean",
        "encode (GB/s)",
        "decode (GB/s)",
        *speed_ups,
    ]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for mean in averages:
        cells = [f"**{_code(mean.name)}**" if mean.is_ours else mean.name]
        cells += [f"{ratios[case.name, mean.name]:.1f}" for case in cases]
        cells += [f"{mean.ratio:.1f}", f"{mean.encode_gb_per_s:.2f}", f"{mean.decode_gb_per_s:.2f}"]
        cells += [f"{model.speed_up(mean, link):.3g}" for link in study.links]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n" + "\n".join(map(_encoders_case, cases)) + "\n"


def _encoders_case(case: encoders_study.Case) -> str:
    unique = f"unique rows {case.unique_before:.1%} before and {case.unique_after:.1%} after quantising"
    return f"- {case.dump}: {case.kind}={case.bound:g}, {unique}, {case.entropy:.2f} bits of entropy a code"


def _code(name: str) -> str:
    return "`" + name.replace("|", "\\|") + "`"


def with_encoders_results(page: Path, study: encoders_study.EncodersStudy) -> str:
    """A page's text, with the tables and figures of the encoders study as the results have them."""

    def figure(name: str) -> str:
        return f"![{name.replace('-', ' ')}](../results/encoders-{name}.svg)\n"

    def filled(mark: re.Match[str]) -> str:
        if mark[2] == "choices":
            return mark[1] + choices_table(study) + mark[4]
        if mark[2] == "cut":
            figures = figure(f"time-{mark[3]}") + "\n" + figure(f"ratio-{mark[3]}")
            return mark[1] + encoders_table(study, int(mark[3])) + "\n" + figures + mark[4]
        return mark[1] + figure(mark[2]) + mark[4]

    return ENCODERS_MARK.sub(filled, page.read_text())


@pytest.mark.skipif(not ENCODERS_RESULTS.exists(), reason="nothing was measured, or there are no results beside it")
def test_a_table_says_what_no_encoder_did() -> None:
    assert ENCODERS_MARK.search(ENCODERS_PAGE.read_text())
    assert with_encoders_results(ENCODERS_PAGE, encoders_study.load(ENCODERS_RESULTS)) == ENCODERS_PAGE.read_text()


if __name__ == "__main__":
    print(floors_table(json.loads(RESULTS.read_text())))
    print(gpu_table(json.loads(GPU_RESULTS.read_text())))
    for marked in (ROOT / "README.md", ROOT / "docs" / "error-bounded.md"):
        marked.write_text(with_rate_results(marked))
    if ENCODERS_RESULTS.exists():
        ENCODERS_PAGE.write_text(with_encoders_results(ENCODERS_PAGE, encoders_study.load(ENCODERS_RESULTS)))
