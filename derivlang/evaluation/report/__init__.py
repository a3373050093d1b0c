"""The report over runs: tables in the shape of the ALIGN-MLM paper's, beside its numbers, figures, one page.

run folders ──runs──▶ Run ──settings──▶ Setting, Entry ──tables, figures──▶ Table, Figure ──page, markdown──▶ files
"""
