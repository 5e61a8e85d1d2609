"""What a parallel round of AdaBoost.LC costs, in sparse-dense products of the same size.

python benchmarks/adaboost_lc_round.py [--examples N] [--corpus reuters|generated]
"""
