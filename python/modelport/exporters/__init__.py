"""The exporters that people know from transformers, on Modelport's capture."""
