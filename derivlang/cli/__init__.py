"""The command line: the commands by what they are about; a module is imported when one of its commands is called."""
