"""The tools we ship, one file each, and the table BUILTIN."""
