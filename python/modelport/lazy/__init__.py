"""Captures of models whose weights are not in memory: lazy weights of a checkpoint, or of another dtype."""
