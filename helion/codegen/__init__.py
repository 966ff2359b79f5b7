"""Code generation: device IR and a config in, one readable Triton module out."""
