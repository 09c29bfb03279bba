"""What all tests share: the table of chains that every promise is held against, and the bodies."""

from __future__ import annotations

import os

import torch
from hypothesis import HealthCheck, settings

settings.register_profile("laconic", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "laconic"))
torch.set_num_threads(2)
