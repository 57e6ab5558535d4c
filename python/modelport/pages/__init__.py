"""Pages to look at: what an artifact or a capture has in it, gathered as one record and shown as one HTML file."""

from .reading import read_report

__all__ = ["read_report"]
