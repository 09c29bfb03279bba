"""Accuracy: what training on compressed tensors costs. One flat script for each experiment, one shared train loop."""
