"""Regenerates the data of the reference tests:

    pip install numpy scipy jax ml_dtypes
    python3 tests/reference/make.py [FAMILY...]
"""
import importlib
import sys

FAMILIES = ("elementwise", "functions", "bits", "formats", "convert", "reduce", "order", "fold",
            "windows", "dot_general", "linear_algebra", "movement", "place", "gather", "nn")

for family in sys.argv[1:] or FAMILIES:
    importlib.import_module(family).main()
