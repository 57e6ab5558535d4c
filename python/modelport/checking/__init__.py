"""Artifacts held against their models: values at several sizes, and the first value that differs."""

from __future__ import annotations

from .compare import check
from .quality import QualityReport
from .report import CheckReport, Row, Skipped

__all__ = ["CheckReport", "QualityReport", "Row", "Skipped", "check"]
