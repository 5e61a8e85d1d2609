"""Mail: from raw bytes, or from the parts a client gives, to the document that a learner sees."""
