"""Runtimes that run artifacts. Only the room of a runtime imports it."""
