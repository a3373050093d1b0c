def write(root, figures): pass
