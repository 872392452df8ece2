"""The smooth SVM (Lee & Mangasarian 2001) with rank-r updates (Tseng & Lee 2012)."""
