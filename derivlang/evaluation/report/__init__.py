"""The report: a view of one table of scores, a pandas DataFrame (`evaluation/table.py`). It imports no torch.

    scores ──frame──▶ checked ──factors──▶ Section ──compare──▶ means and contrasts ──tables, figures──▶ page, files

What varies among the rows of a study is a factor, what does not is a caption. No task, measure or metric is known by
name: titles, units and what a metric is over come from the columns that it declares (`columns.py`).
"""
