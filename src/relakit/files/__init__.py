"""Files and folders: written whole or not at all, locked while at work, errors in words."""
