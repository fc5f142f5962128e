"""HTTP as every part that uses it needs it: what stands between us and a URL, and whom to trust there."""
