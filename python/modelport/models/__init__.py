"""A model in memory: what a run changes in it, and who may use it meanwhile."""
