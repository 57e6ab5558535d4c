"""Folders of sentence-transformers: a transformer, and what makes one embedding of its tokens."""
