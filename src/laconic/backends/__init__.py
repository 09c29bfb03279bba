"""Faster bodies for the operators of `laconic.ops`, and nothing else."""
