"""Label coverings: how the mistakes of one prediction are counted.

A covering maps an example's label set to a multiset of cover elements, which are sets of labels. One wrong
label in an element costs as much as any number of wrong labels in it (Amit, Dekel & Singer, "A boosting
algorithm for label covering in multilabel problems", section 2 and figure 1).

``schema.py`` defines coverings as JSON, with ``conditions.py`` and ``elements.py`` for their parts.
``compiled.py`` has a covering for labels in a fixed order, and ``evaluation.py`` computes its loss, its error
and the example weights.

In this example, mistakes in a basketball story count label by label in sport and as one unit in economy.
In all other stories, the relevant labels are one element of weight 2 and each irrelevant label is an element:

>>> import numpy as np
>>> from scipy.sparse import csr_array
>>> covering = parse_covering({"kind": "rules", "rules": [
...     {"when": {"has": "basketball"},
...      "cover": [{"each": ["basketball", "football"]}, {"all": ["currencies", "markets"]}]},
...     {"when": "otherwise", "cover": [{"positives": "all", "weight": 2}, {"negatives": "each"}]}]})
>>> compiled = covering.compile(["basketball", "currencies", "football", "markets"])
>>> story = csr_array([[1, 0, 0, 0]])
>>> compiled.errors(story, np.array([[-1.0, 1.0, 1.0, 1.0]]))  # all are wrong: 2 in sport, 1 in economy
array([3.])
"""

from models.covering.compiled import CompiledCovering, ExampleBatch
from models.covering.conditions import CoverCondition
from models.covering.elements import CoverElement
from models.covering.schema import Covering, HammingCovering, parse_covering

__all__ = [
    "CompiledCovering",
    "CoverCondition",
    "CoverElement",
    "Covering",
    "ExampleBatch",
    "HammingCovering",
    "parse_covering",
]
