"""The command line: one file for each command, imported when the command is called."""
