"""Observed calls: what a model was called with, the arguments and dynamic shapes of an export that follow from it."""

from .calls import InputCandidate, InputObserverInfo
from .observer import InputObserver
from .relations import Relation

__all__ = ["InputCandidate", "InputObserver", "InputObserverInfo", "Relation"]
