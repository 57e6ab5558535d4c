"""Rows of the zoo that do not work yet, each with its reason. A row that works must be taken off this list."""

from __future__ import annotations

EXPECTED: dict[str, str] = {
    "llama with a static cache": "the state has plain numbers inside, and torch compares them with the example's",
    "flava": "its config asks for a loss (return_loss)",
    "time_series_transformer": "its inputs have future_values, which an exporter takes for labels",
    "informer": "its inputs have future_values, which an exporter takes for labels",
    "autoformer": "its inputs have future_values, which an exporter takes for labels",
}
