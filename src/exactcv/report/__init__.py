"""Results in words, plots and pages, from an ``Overview`` alone.

Nothing here knows how a result came about; whoever has one makes an ``Overview`` of it.
"""

from .words import Remark, curve_table, remarks, summary

__all__ = ["Remark", "curve_table", "remarks", "summary"]
