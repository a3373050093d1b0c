"""Word-order models: read, fit, exact probabilities, drawing orders for whole batches."""
