"""Passes over device graphs: what they change, that they change nothing else, and their checks."""

from functools import partial
from pathlib import Path

import pytest
import torch
from golden import Golden

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE
from helion.ir.graph import calls, copy_graph
from helion.ir.passes import PASSES, everywhere, passes_for
from helion.ir.passes.dead_code import remove_dead_code
from helion.ir.passes.narrowing import drop_narrowing
from helion.ir.passes.rounding import round_last
from helion.ir.printer import print_program

golden = Golden(Path(__file__).with_suffix(".expected"))
CONVERT = torch.ops.prims.convert_element_type.default


@helion.kernel
def round_trip(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = torch.exp(x[tile]) * 2
        out[tile] = y - 1
    return out


@helion.kernel
def moved(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i, j in hl.tile(x.shape):
        y = torch.exp(x[i, j])
        kept = torch.where(y > 1, y, 0.0)
        out[i, j] = (kept.T + 1).T
    return out


@helion.kernel
def kept_where_it_is_read(x: torch.Tensor, half: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = torch.exp(x[tile])
        half[tile] = y
        out[tile] = y.to(torch.float8_e4m3fn).to(torch.float32) + y
    return out


@helion.kernel
def inside(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in hl.tile(x.size(0)):
        total = x[i, 0]
        for j in hl.tile(x.size(1)):
            torch.sin(x[i, j])
            total += (x[i, j] * 2 + 1).sum(1)
        if total.sum() > 0:
            torch.cos(total)
            total = total * 3 + 1
        out[i, 0] = total
    return out


@helion.kernel
def dead(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = torch.exp(x[tile])
        z = torch.sin(y)
        z = torch.cos(z)
        out[tile] = y
    return out


@helion.kernel
def choice(x: torch.Tensor, half: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = torch.where(x[tile] > 0, x[tile] * 2, -1.0)
        out[tile] = torch.where(x[tile] > 1, y, torch.exp(x[tile]))
        half[tile] = torch.where(x[tile] > 1, x[tile], 0.0)
    return out


ROW, SQUARE = [256], [64, 128]
CASES = {
    "round_trip": (round_trip, [ROW]),
    "moved": (moved, [SQUARE]),
    "kept_where_it_is_read": (kept_where_it_is_read, [ROW, ROW]),
    "inside": (inside, [SQUARE]),
    "choice": (choice, [ROW, ROW]),
    "dead": (dead, [ROW]),
}


def program(name):
    kernel, shapes = CASES[name]
    args = tuple(torch.zeros(s, dtype=torch.bfloat16, device=DEVICE) for s in shapes)
    return kernel.bind(args).program


def text_of(typed, device=None):
    return print_program(device or typed.device, typed.host_numbers)


def graph_of(name):
    return program(name).device.loops[0].graph


@pytest.mark.parametrize("name", CASES)
def test_texts(name):
    """The graph as it was traced, and after each pass that changed it."""
    typed = program(name)
    device, text = typed.device, text_of(typed)
    golden(f"{name}.traced", text)
    for rewrite in PASSES:
        device = device.map_graphs(partial(everywhere, rewrite))
        before, text = text, text_of(typed, device)
        golden(f"{name}.{rewrite.__name__}", text if text != before else "no change")


def test_all_texts_are_tested():
    stages = ["traced", *(p.__name__ for p in PASSES)]
    golden.are_all([f"{name}.{stage}" for name in CASES for stage in stages])


@pytest.mark.parametrize("rewrite", PASSES)
@pytest.mark.parametrize("name", CASES)
def test_the_argument_is_as_it_was(name, rewrite):
    typed = program(name)
    before = text_of(typed)
    graphs = [loop.graph for loop in typed.device.loops]
    nodes = [list(g.nodes) for g in graphs]
    typed.device.map_graphs(partial(everywhere, rewrite))
    assert text_of(typed) == before
    assert [list(g.nodes) for g in graphs] == nodes


@pytest.mark.parametrize("rewrite", PASSES)
@pytest.mark.parametrize("name", CASES)
def test_twice_is_once(name, rewrite):
    typed = program(name)
    once = typed.device.map_graphs(partial(everywhere, rewrite))
    twice = once.map_graphs(partial(everywhere, rewrite))
    assert text_of(typed, twice) == text_of(typed, once)


def test_a_setting_keeps_narrowing():
    assert passes_for(keep_narrowing=False) == PASSES
    assert passes_for(keep_narrowing=True) == (round_last, remove_dead_code)
    assert (drop_narrowing, round_last, remove_dead_code) == PASSES


# -- a pass that breaks something is named -------------------------------------------------------


def wrong_dtype(graph):
    graph = copy_graph(graph)
    node = next(calls(graph, CONVERT))
    node.args = (node.args[0], torch.float64)
    return graph


def mixed_dtypes(graph):
    graph = copy_graph(graph)
    *_, node = calls(graph, CONVERT)
    node.replace_all_uses_with(node.args[0])
    return graph


def wrong_order(graph):
    graph = copy_graph(graph)
    first, *_, last = graph.nodes
    last.append(first)
    return graph


def without_facts(graph):
    graph = copy_graph(graph)
    next(calls(graph, CONVERT)).meta.clear()
    return graph


def wrong_region(graph):
    graph = copy_graph(graph)
    output = next((n for n in graph.nodes if n.op == "output"), None)
    for value in output.args[0] if output else ():
        if value.target is CONVERT:
            value.replace_all_uses_with(value.args[0])
    return graph


@pytest.mark.parametrize("broken", [wrong_dtype, mixed_dtypes, wrong_order, without_facts])
def test_a_pass_that_breaks_the_graph_is_named(broken):
    with pytest.raises(exc.InternalError, match=f"the pass `{broken.__name__}` broke the graph"):
        everywhere(broken, graph_of("kept_where_it_is_read"))


def test_a_pass_that_breaks_a_region_is_named():
    with pytest.raises(exc.InternalError, match=r"`wrong_region`.*a region of"):
        everywhere(wrong_region, graph_of("inside"))
