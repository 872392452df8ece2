"""Alpha seeding (Wen et al. 2017): where to start a fold, given the solution of another.

One seed is one file and one free function of a ``Change``; ``feasible.py`` makes every seed meet
the constraints; ``chain.py`` runs the folds one after the other.
"""

from .ato import ato
from .avg_top import avg, top
from .change import Change
from .feasible import repair, shift
from .mir import mir
from .sir import sir

__all__ = ["Change", "ato", "avg", "mir", "repair", "shift", "sir", "top"]
