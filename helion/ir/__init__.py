"""The device IR: symbols, values, graphs, their printer, and the passes over them.

The grammar of the IR on one page:

    program := host function, top-level loops, block sizes
    loop    := axes, graph
    axis    := name, block size | none (a grid axis), begin, end, step
    graph   := nodes of a `torch.fx.Graph`, in order
    node    := prim(args)         a `torch.ops.prims` overload: pointwise, reduction, view
             | op(args)           an operation of `helion.language`: load, store, rand, ...
             | for_loop(axes, graph, inputs, carried)  | if_else(condition, graphs, inputs)
    arg     := node | number | symbolic scalar | index item | axis | host tensor | tuple of args

Symbolic scalars (`SymInt`, `SymFloat`, `SymBool`) are expressions over the symbols of one kernel;
`Symbols` knows where each symbol comes from.
"""
