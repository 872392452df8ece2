"""Wang & Zou (2021), Fast and exact leave-one-out analysis of large-margin classifiers."""

# The paper's own simulation: means of 2.  Its sigma = 4 is a standard deviation: with a variance of
# 4 every left-out error is 0, which its objectives (0.55 to 0.62) rule out.
MAGIC = {"mean": 2.0, "noise": 4.0}
