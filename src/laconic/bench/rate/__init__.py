"""The rate study: how small, how good and how fast, at each bound, beside every peer that is installed."""
