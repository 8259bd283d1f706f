"""Explains why a framework finds no GPU in a session of a simulated host. It runs right after the framework's import."""
import json
import os
import sys

NAMES = {"cupy": "CuPy", "jax": "JAX", "tensorflow": "TensorFlow"}


def prepare(module):
    with open(os.path.join(os.path.dirname(__file__), "session.json")) as file:
        session = json.load(file)
    if session.get("compute") and sys.stderr is not None:
        sys.stderr.write("cosplay: %s finds no GPU in this session: its host has none, and only PyTorch computes on the CPU in its place. "
                         "Run the program on a host with a GPU, or on the CPU.\n" % NAMES[module.__name__])
