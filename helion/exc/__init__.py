"""Every error and warning of Helion, each with the place in the author's source.

`spans` says where, `render` draws, `base` is what all classes share; the other files are the
catalogue, and a class there is only text. Raise with the values that the text names:

    raise exc.SeedNotInteger(span, got="float", related=[exc.Related(parameter, "it enters here")])
"""

# ruff: noqa: F403 - each file of the catalogue lists its classes in `__all__`; a second list here would only drift

from __future__ import annotations

from helion.exc.base import *
from helion.exc.internal import *
from helion.exc.outside import *
from helion.exc.program import *
from helion.exc.random_numbers import *
from helion.exc.render import excerpt as excerpt
from helion.exc.scoping import *
from helion.exc.shapes import *
from helion.exc.spans import Related as Related
from helion.exc.spans import Span as Span
from helion.exc.tuning import *
from helion.exc.usage import *
from helion.exc.warning import *
