"""Kernels by way of m features: for data whose kernel matrix would not fit (see ``driver.py``)."""
