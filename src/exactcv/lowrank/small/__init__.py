"""Problems of a few thousand rows near the margin: all that is ever solved outright."""
