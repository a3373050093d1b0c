"""Evaluation of pre-trained models: fine-tuning, alignment, perplexity, and the report over runs."""
