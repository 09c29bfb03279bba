"""State dicts on the command line: which rule got what, what stayed, and how much memory that takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import pytest
import safetensors.torch
import torch

import laconic

STATE = {
    "embed.weight": torch.linspace(-1, 1, 200 * 64).reshape(200, 64),
    "layer.0.weight": torch.linspace(0, 3, 64 * 64).sin().reshape(64, 64),
    "layer.0.bias": torch.linspace(0, 1, 64),
    "layer.1.weight": torch.linspace(0, 5, 64 * 64).cos().reshape(64, 64),
    "layer.1.ids": torch.arange(64 * 64, dtype=torch.uint8).reshape(64, 64),
    "step": torch.tensor(7),
}
BOUND = "bound:abs=0.001|lorenzo|huffman"


@pytest.fixture
def model(tmp_path):
    safetensors.torch.save_file(STATE, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.fixture
def compress(run, model, tmp_path):
    """Compresses the model; gives the report, and what a reader of the file gets."""

    def compress(*options):
        target = tmp_path / "out.laconic.safetensors"
        code, out, err = run("compress", model, target, *options, "--json")
        assert (code, err) == (0, "")
        return json.loads(out), laconic.load(target, decode=True), laconic.load(target)

    return compress


def test_a_rule_is_applied_to_the_wrong_tensor(compress):
    options = ("--rule", "embed.*=affine:bits=8,per=row", "--rule", "layer.1.*=keep")
    report, state, stored = compress(*options, "--codec", BOUND, "--only", "*.weight")
    chains = {n: "|".join(str(k.stage) for k in x.chain) for n, x in stored.items() if isinstance(x, laconic.Encoded)}
    assert chains == {"embed.weight": "affine:per=row", "layer.0.weight": BOUND}
    assert state.keys() == STATE.keys()
    for name in STATE.keys() - chains.keys():
        assert torch.equal(state[name], STATE[name]), name
    kept = {row["tensor"]: row["kept"] for row in report["tensors"] if row["kept"]}
    assert "layer.1.*=keep" in kept["layer.1.weight"]
    assert kept["step"] == "no rule names it"


def test_what_a_rule_did_is_not_what_is_printed(compress):
    report, state, _ = compress("--rule", "embed.*=affine", "--codec", BOUND)
    rules = {row["rule"]: row for row in report["rules"]}
    assert list(rules) == ["embed.*=affine", f"*={BOUND}"]
    mine = rules[f"*={BOUND}"]
    weights = ["layer.0.weight", "layer.1.weight"]
    errors = {name: laconic.metrics.max_error(STATE[name], state[name]) for name in weights}
    assert mine["worst"] == max(errors, key=errors.get)
    assert mine["max_error"] == errors[mine["worst"]] <= 0.001
    assert mine["tensors"] == 5
    assert mine["before"] == sum(x.nbytes for name, x in STATE.items() if name != "embed.weight")
    rows = [row for row in report["tensors"] if row["rule"] == mine["rule"]]
    assert mine["compressed"] == sum(row["kept"] is None for row in rows)
    assert mine["ratio"] == mine["before"] / sum(row["after"] for row in rows)


def test_whole_numbers_lose_digits(compress):
    report, state, _ = compress("--codec", "dct:chop=4")
    assert torch.equal(state["layer.1.ids"], STATE["layer.1.ids"])
    (row,) = (row for row in report["tensors"] if row["tensor"] == "layer.1.ids")
    assert "lossy, and these are whole numbers" in row["kept"]


def test_the_table_leaves_out_a_rule(run, model, tmp_path):
    code, out, err = run("compress", model, tmp_path / "out", "--rule", "none.*=zstd", "--rule", "embed.*=affine")
    assert (code, err) == (0, "")
    assert re.search(r"none\.\*=zstd +│ +0", out)
    assert re.search(r"no rule +│ +5", out)


def test_a_state_dict_does_not_come_back_as_it_was_laid_out(run, model, tmp_path):
    """To the byte: what was not compressed goes through both commands, a tensor after another."""
    run("compress", model, tmp_path / "packed", "--rule", "*=lorenzo|huffman")
    assert run("decompress", tmp_path / "packed", tmp_path / "back.safetensors").code == 0
    state = safetensors.torch.load_file(tmp_path / "back.safetensors")
    assert all(torch.equal(state[name], x) for name, x in STATE.items())
    safetensors.torch.save_file(state, tmp_path / "again.safetensors", {"format": "pt"})
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "back.safetensors").read_bytes()


def test_a_file_written_bit_by_bit_is_another_than_save_writes(run, model, tmp_path):
    run("compress", model, tmp_path / "packed", "--codec", BOUND)
    laconic.save(tmp_path / "saved", laconic.load(tmp_path / "packed"))
    assert (tmp_path / "saved").read_bytes() == (tmp_path / "packed").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "expected --codec SPEC, or rules"),
        (("--only", "*.weight"), "expected --codec SPEC, or rules"),
        (("--rule", "*.weight"), "not a rule: expected PATTERN=SPEC"),
        (("--rule", "*=dctt:chop=4"), "Did you mean 'dct'"),
        (("--codec", "affine", "--only", "*.wieght"), "No tensor of"),
    ],
)
def test_a_bad_rule_is_met_after_the_work(options, message, run, model, tmp_path):
    code, out, err = run("compress", model, tmp_path / "out", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert list(tmp_path.iterdir()) == [model]


def test_rules_choose_in_a_file_without_names(run, npy, tmp_path):
    code, _, err = run("compress", npy, tmp_path / "out", "--rule", "*=affine")
    assert code == 2
    assert "holds one tensor" in err


def test_memory_grows_with_the_number_of_tensors(tmp_path):
    """20 tensors of 8 MiB more, compressed and decompressed, must not need half of what they have."""
    code = """
        import re, sys, threading, time, torch
        from laconic.cli import packing, decompress
        from pathlib import Path

        def anonymous():
            return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

        peak, done = 0, False
        def watch():
            global peak
            while not done:
                peak = max(peak, anonymous())
                time.sleep(0.001)

        torch.set_num_threads(1)
        source, folder = Path(sys.argv[1]), Path(sys.argv[2])
        import safetensors.torch, laconic.container
        threading.Thread(target=watch, daemon=True).start()
        packing.compress_file(source, folder / "packed", "affine:bits=8")
        decompress.decompress(folder / "packed", folder / "back.safetensors")
        done = True
        print(peak)
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")

    def peak(count):
        safetensors.torch.save_file({f"{i}": torch.rand(2048, 1024) for i in range(count)}, tmp_path / "in.safetensors")
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "in.safetensors"), str(tmp_path)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024

    assert peak(24) - peak(4) < 80
