"""The job queue and everything that a running job needs: notifications, progress, checkpoints."""
