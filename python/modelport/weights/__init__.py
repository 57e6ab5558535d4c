"""Checkpoints: their files, the names of weights in them, and weights that are not read yet."""
