"""What a pre-trained model transfers: fine-tuning, alignment, and the report over runs."""
