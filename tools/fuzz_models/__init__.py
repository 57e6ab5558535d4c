"""Random small models against every way to run them: `make fuzz-models`.

A program is Python source made from a seed (`program.py`), of ingredients (`ingredients/`) that are tried out in eager
PyTorch while it grows (`worlds.py`). It is captured and written (`ways.py`), called at sizes and with data inside its
limits and outside of them (`calls.py`), and each result is held against eager (`verdict.py`).
"""
