"""Stages that take codes to codes that are cheaper to write; exactly invertible."""
