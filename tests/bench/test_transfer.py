"""No GPU is needed to see that the right bytes move: what would be pinned and sent is copied here."""

from __future__ import annotations

import pytest
import torch

from laconic.bench import blocks, transfer
from laconic.bench.plan import Plan


def plan(device):
    return Plan(torch.device(device), threads=1, chops=(2, 4), serial=(1,), quick=True)


def test_what_arrives_decodes_to_what_was_sent(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self.clone())
    contenders = transfer.contenders(plan("cpu"), (2, 3, 32, 32), 4)
    for contender in contenders:
        contender.run()
    for contender in contenders:
        contender.check()


@pytest.mark.parametrize(("device", "sections"), [("cpu", {"floors"}), ("cuda", {"transfer"})])
def test_floors_are_a_cpus_and_transfers_a_gpus(device, sections):
    found = {race.section for race in blocks.races(plan(device))}
    assert found & {"floors", "transfer"} == sections
