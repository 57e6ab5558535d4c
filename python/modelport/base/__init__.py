"""Errors with a way out, text for people, the C++ core, and how flat tensors sit in nested structures."""
