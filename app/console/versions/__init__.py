"""What the pages of models show: an evaluation, a comparison of versions, and the model card."""
