"""What happens to a run from outside: kills, two runs at once, full disks, sources that change, damage to what it made.

scenarios.py   runs, each with what must be there in the end
kills.py       a run is killed at a chosen file operation, or at a random moment; the same command then goes on
damage.py      a finished set is damaged; `verify` finds it
around.py      two runs in one folder, a source that changes while it is read, disks that are full or read-only

python -m tests.faults            # the long run: 200 kills, 400 damages and more; prints a table
"""
