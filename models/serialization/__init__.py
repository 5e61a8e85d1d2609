"""Read, check and write named arrays, the content of saved models and snapshots."""
