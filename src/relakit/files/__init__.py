"""Files and folders: written whole or not at all, locked while in use, with readable errors."""
