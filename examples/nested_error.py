"""
Which error should I report?
============================

The least cross-validated error of a grid is too good: it was chosen by the very rows that it
counts.  Here are 60 patients and 20 measurements that carry *no* signal at all, and three answers
to "how good is my classifier?": the least error, the corrected one, and the nested one.
"""

# %%
# Labels drawn by a coin: nobody can do better than an error of one half.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest

import exactcv

rng = np.random.default_rng(1)
X, y = rng.normal(size=(60, 20)), rng.permutation(np.repeat(["ill", "well"], 30))

# %%
# Tuning over 12 values of C and 5 of gamma by ten folds finds a point that looks promising.
model = exactcv.SVCCV(
    Cs=np.geomspace(0.01, 1000, 12), gamma=[0.003, 0.01, 0.03, 0.1, 0.3], cv=10
).fit(X, y)
least = 1 - model.best_score_
print(f"least error: {least:.3f}")

# %%
# ``corrected_score_`` repeats the choice on bootstrap samples of the left-out predictions, and
# judges it by the rows outside them.  Nothing is trained again.
corrected = model.corrected_score_
print(f"corrected:   {corrected.error:.3f}")

# %%
# ``nested_score`` tunes the whole grid afresh without each outer fold: the rows that judge had no
# say in the choice.  Others need 10 times as long as for tuning; here the outer folds start from
# what is known already.
nested = model.nested_score(X, y, outer=10)
print(f"nested:      {nested.error:.3f}")

# %%
# In a picture, with 95 percent intervals.  Report the nested figure (or the corrected one, where
# time is short), and say how the point was chosen: ``print(model.methods_text())`` writes
# that paragraph.
wilson = binomtest(round(60 * least), 60).proportion_ci(method="wilson")
figures = {
    "least": (least, wilson.low, wilson.high),
    "corrected": (corrected.error, *corrected.error_interval),
    "nested": (nested.error, *nested.interval),
}
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for k, (value, lower, upper) in enumerate(figures.values()):
    ax.plot([lower, upper], [k, k], color="C0")
    ax.plot(value, k, "o", color="C0")
ax.axvline(0.5, color="grey", linestyle="--")
ax.text(0.5, 2.35, " truth", color="grey")
ax.set(yticks=range(3), yticklabels=list(figures), xlabel="error", xlim=(0, 1), ylim=(2.6, -0.6))
plt.show()
