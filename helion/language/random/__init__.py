"""Random numbers: pure functions of a seed and of each element's global index."""

from helion.language.random.bernoulli import bernoulli
from helion.language.random.bits import randint4x, random_bits
from helion.language.random.integers import randint
from helion.language.random.keys import fold_in, split_seed
from helion.language.random.normal import exponential, gumbel, randn
from helion.language.random.uniform import rand, rand4x, uniform

__all__ = [
    "bernoulli",
    "exponential",
    "fold_in",
    "gumbel",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "random_bits",
    "split_seed",
    "uniform",
]
