"""A Python function for each command that makes or measures something, with the same names, defaults and errors.

    made = derivlang.make("demo", "trans,inv", "twin")          made.dataset("train"), made.verify(), made.undo("back")
    run = derivlang.pretrain("demo", "trans,inv", "run", objective="align-mlm", vocab_size=300, steps=50)
    scores = run.evaluate(task="pos:demo", epochs=5, lr=2e-3)   a DataFrame, as of `derivlang.scores`
    derivlang.report(run, out="report")

A command is declared once, as a dataclass (command.py). A progress bar is shown in a notebook and on a terminal.
"""
