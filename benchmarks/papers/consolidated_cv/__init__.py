"""Wang & Yang (2022), A consolidated cross-validation algorithm for support vector machines."""
