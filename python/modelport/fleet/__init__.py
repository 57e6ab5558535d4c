"""Many models at once: jobs on machines that have room for them, each done once and kept by what it was made of."""
