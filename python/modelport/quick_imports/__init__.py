"""Commands start before all of torch and transformers is imported: what is deferred, and when."""
