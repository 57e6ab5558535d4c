"""Model code that is replaced during a capture: one registry, and the replacements."""
