"""A model becomes a graph: one recorded run, the search for the run that works, guards tested at other sizes."""
