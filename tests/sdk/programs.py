"""Paths, and how to run the programs of tests/npm."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENT = os.path.join(ROOT, "doc", "openapi.yaml")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}
