"""Names of models on the Hugging Face hub, wherever a folder is taken: fetched through the hub's own cache."""
