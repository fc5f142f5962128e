"""Files of configuration that were not written by the user for us: those of other programs, and of a workspace."""
