"""Stages that take floats to integer codes."""
