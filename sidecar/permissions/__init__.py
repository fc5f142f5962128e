"""Who may do what, and why: pure decisions, no input or output."""
