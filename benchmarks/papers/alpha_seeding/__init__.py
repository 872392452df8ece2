"""Wen et al. (2017), Improving efficiency of SVM k-fold cross-validation by alpha seeding."""
