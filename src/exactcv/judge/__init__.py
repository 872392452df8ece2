"""The proof: is this the solution of that problem?

The certificate and its tolerances, the rule that picks the intercept, one judge per kind of loss,
and the ledger, in which methods enter coefficients and the judge's figures are noted.  Nothing here
knows how a solution was found.
"""
