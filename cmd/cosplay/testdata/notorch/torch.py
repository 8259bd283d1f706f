"""Hides PyTorch in stories of which it is no part: its import takes seconds in each session."""
raise ModuleNotFoundError("No module named 'torch'", name="torch")
