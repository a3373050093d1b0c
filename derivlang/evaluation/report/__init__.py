"""The report over runs: tables like those of the ALIGN-MLM paper and beside its numbers, figures, and one page.

run folders ──runs──▶ Run ──settings──▶ Setting, Entry ──tables, figures──▶ Table, Figure ──page, markdown──▶ files
"""
