"""Compressors of others, wrapped once each: numpy arrays in, bytes out, nothing of laconic's own in between."""
