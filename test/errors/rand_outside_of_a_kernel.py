import helion.language as hl

numbers = hl.rand([8], seed=7)
