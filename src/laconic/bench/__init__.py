"""Measure, write JSON, plot: what codecs cost and give, on a machine that is named."""
