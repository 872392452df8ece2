"""What every run needs whatever it computes: threads, progress, screens, memory.

Nothing here knows of kernels, losses or folds.
"""
