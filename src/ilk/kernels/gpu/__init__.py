"""Kernels for NVIDIA GPUs: CUDA C++ in `source/`, compiled where it runs, its plans and layouts as pure functions.

Nothing here is imported unless a GPU is asked for, and nothing but `launch.py` needs one.
"""
