"""The way back of whatever keeps a loop over items in one piece."""


class Unroll(Exception):
    """A loop that has to be unrolled."""


class NoLength(Unroll, TypeError):
    """Of what is asked for its length: `tuple(x)` asks, too, and goes on without it where the error is of this type."""
