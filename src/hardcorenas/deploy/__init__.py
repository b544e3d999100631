"""From a network to a file that ships, and to evidence that it keeps its budgets."""
