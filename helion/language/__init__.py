"""The language: what kernel authors import as `hl`."""
