"""The way back of whatever keeps a loop over items in one piece."""


class Unroll(Exception):
    """A loop that has to be unrolled."""
