"""The front end: from a Python function to a typed program and its device IR."""
