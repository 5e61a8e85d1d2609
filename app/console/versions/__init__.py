"""What the pages of models show: an evaluation, a comparison of versions, charts, and the model card."""
