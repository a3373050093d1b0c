"""The page of `derivlang explore`: a sentence under transforms that one chooses, and statistics of a set."""
