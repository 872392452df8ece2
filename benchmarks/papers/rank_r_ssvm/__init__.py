"""Tseng & Lee (2012), Rank-r updating techniques for fast exact cross-validation."""
