"""What the exploration costs: a million worlds in plain Python, and our search against `minicheck`.

The million is explored in a process of its own, every property evaluated on every step. The search alone
is compared on Peterson's algorithm: one initial state, one function that gives the steps, one invariant.
`minicheck` is no dependency of this project; without it nothing is compared, and the bars are not reached.
"""

import gc
import importlib
import json
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, perf_counter_ns
from types import ModuleType

import pairs
from pairs import Figure, Pair

from startonce.checker.explore import explore
from startonce.checker.starts import explored
from startonce.model.properties import ALWAYS
from startonce.model.start import Budget, Scope
