"""Training networks: data, weights, schedules."""
