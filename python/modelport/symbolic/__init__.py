"""What keeps Python code from turning symbolic sizes into plain numbers during a capture."""
