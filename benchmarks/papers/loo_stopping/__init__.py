"""Franc, Laskov & Mueller (2008), Stopping conditions for exact computation of LOO error."""
