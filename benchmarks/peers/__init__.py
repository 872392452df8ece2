"""exactcv beside scikit-learn, and its methods beside each other, on the papers' simulation."""
