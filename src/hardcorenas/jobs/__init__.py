"""What every long job needs: processes, stop signals, locks, run folders, steps."""
