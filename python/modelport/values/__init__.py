"""Comparing values: tolerances, what a model computes in eager mode, and where values part."""
