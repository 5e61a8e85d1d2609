"""The content of the pages of models: an evaluation, a comparison of versions, and the model card."""
