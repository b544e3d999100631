"""All networks of a space in one: elastic blocks, paths through them, extraction. Needs torch."""
