"""Jobs: the ledger that says who may do what, and the kinds of work there are."""
