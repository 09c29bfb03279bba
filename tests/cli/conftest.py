"""Running the command: in this process, which is quick, or as a user does, in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import torch

import laconic
from laconic.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """laconic's command line on some arguments."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["laconic", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit:
            main()
        return Outcome(exit.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def start():
    """Starts the command in a process of its own, which does not outlive the test."""
    started = []

    def start(*arguments, **options):
        command = [sys.executable, "-m", "laconic", *map(str, arguments)]
        environment = {**os.environ, "LACONIC_NATIVE": "0"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, env=environment, **{**pipes, **options}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def array():
    """Smooth along both axes, as images are."""
    y, x = np.mgrid[:32, :48].astype("f4")
    return np.stack([np.sin(x / 9 + c) * np.cos(y / 7) for c in range(3)]).astype("f4")


@pytest.fixture
def npy(tmp_path, array):
    path = tmp_path / "in.npy"
    np.save(path, array)
    return path


@pytest.fixture
def packed(tmp_path, array):
    """A compressed file of one tensor."""
    path = tmp_path / "packed.laconic"
    laconic.save(path, laconic.encode(torch.from_numpy(array), "dct:chop=4"))
    return path
