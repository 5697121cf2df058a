#!/usr/bin/env python3
"""PyTorch's losses where rows lack any of the labels, as those of tasks/pytorch_tasks.py."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tasks"))
from pytorch_tasks import main

if __name__ == "__main__":
    main()
