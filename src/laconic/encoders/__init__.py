"""Stages that take codes to bytes; exactly invertible."""
