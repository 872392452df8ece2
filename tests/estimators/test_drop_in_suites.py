"""A few of scikit-learn's own tests, with the drop-ins in its place; all: ``make campaign``."""

from __future__ import annotations

import sklearn
from campaign.sklearn_suites.run import differing, listed
from sklearn.utils.fixes import parse_version

SOME = (
    "test_no_refit",
    "test_grid_search_groups",
    "test_grid_search_correct_score_results",
    "test_grid_search_failing_classifier_raise",
    "test_multi_metric_search_forwards_metadata",
    "test_cross_val_score_mask",
    "test_cross_val_predict_pandas",
)


def test_the_tests_that_differ_are_those_that_are_listed() -> None:
    differ, names = differing(svc=True, extra=["-k", " or ".join(SOME)])
    assert names >= {"test_no_refit", "test_cross_val_score_mask"}
    expected = listed() & names
    if parse_version(sklearn.__version__) >= parse_version("1.9"):
        assert differ == expected
    else:  # the list is that of the newest version; earlier ones look less closely
        assert differ <= expected
