"""Smoothed hinge, accelerated proximal gradient and safe reduction, for all folds at once."""
