"""What holds for all tests."""

import os

# Tests start hundreds of Python processes; compiling our modules anew in each would double their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
