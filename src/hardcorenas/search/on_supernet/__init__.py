"""The search on a trained supernet: its gradients and scores, in a folder, resumable."""
