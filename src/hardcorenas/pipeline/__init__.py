"""The main job: the steps of the other folders, one after the other, each kept and gone on with."""
