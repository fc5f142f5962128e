"""One function a method: decoded params in, value out."""
