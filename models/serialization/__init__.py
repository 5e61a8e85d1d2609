"""Reading and writing named arrays: the building blocks of saved models and snapshots."""
