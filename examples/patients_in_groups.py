"""
Several samples of each patient: leave out patients
===================================================

30 patients, four tissue samples of each, 500 genes.  Samples of one patient resemble each other,
so a model that has seen three of them recognises the fourth by the patient, not by the disease.
Leaving out one sample at a time then reports far too few errors; leaving out patients is honest.
"""

# %%
# Only 20 genes depend on the disease, and weakly; all genes depend on the patient.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.preprocessing import StandardScaler

import exactcv

rng = np.random.default_rng(0)
n_patients, n_samples, n_genes = 30, 4, 500
patient = np.repeat(np.arange(n_patients), n_samples)
ill = rng.permutation(np.arange(n_patients) % 2)
y = np.where(ill[patient], "ill", "well")
X = rng.normal(size=(n_patients, n_genes))[patient] + 0.7 * rng.normal(size=(len(y), n_genes))
X[:, :20] += 0.9 * ill[patient][:, None]
X = StandardScaler().fit_transform(X)

# %%
# The whole curve of C, each sample left out, and then each patient.
Cs = np.geomspace(1e-5, 1e-1, 25)
by_sample = exactcv.cross_validate(X, y, kernel="linear", Cs=Cs)
by_patient = exactcv.cross_validate(
    X, y, kernel="linear", Cs=Cs, cv=LeaveOneGroupOut(), groups=patient, output="decision"
)
for name, result in (("samples", by_sample), ("patients", by_patient)):
    best = result.best
    print(f"leaving out {name:<9} least error {result.error[best]:.3f} at C = {Cs[best]:.2g}")

# %%
# ``corrected`` draws whole patients too, when told.
corrected = by_patient.corrected(groups=patient)
low, high = corrected.error_interval
print(f"after tuning {corrected.error:.3f} (95 percent interval {low:.3f} to {high:.3f})")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
by_sample.plot(ax=ax, label="one sample left out")
by_patient.plot(ax=ax, label="one patient left out")
ax.legend([line for line in ax.lines if line.get_marker() == "."], ["samples", "patients"])
plt.show()
