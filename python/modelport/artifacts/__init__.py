"""Exported files: what they say of themselves, what they are valid for, and how they take their places."""
