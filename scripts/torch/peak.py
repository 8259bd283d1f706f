"""The peaks of GPU memory of another program: peak.py PROGRAM [ARGUMENT...]. No values are printed, so it also runs where none
are computed (compute = "shapes")."""
import os
import runpy
import sys

import common
import torch

common.show = lambda name, value: None
sys.argv = sys.argv[1:]
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[0] + ".py"), run_name="__main__")
print(sys.argv[0], torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_stats()["num_alloc_retries"], flush=True)
