"""Stages that take floats to floats, often fewer."""
