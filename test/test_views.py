"""Views in device code against torch, over ragged tiles and axes that are padded."""

import pytest
import torch

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def compiled(function, *blocks, **settings):
    config = helion.Config(block_sizes=list(blocks))
    return helion.kernel(function, config=config, **settings)


def numbers(*shape):
    """Distinct numbers, none of them 0: a lane in a wrong place shows."""
    count = torch.Size(shape).numel()
    return torch.arange(1, count + 1, dtype=torch.float32, device=DEVICE).reshape(shape)


# -- one tile, whole axes ------------------------------------------------------------------------


def rows(x, out, view):
    for t in hl.tile(x.size(0)):
        out[t] = view(x[t], t)


def merge(v, t):
    return v.reshape(t, v.size(1) * v.size(2))


def merge_the_rest(v, t):
    return v.view(t, -1)


def flatten(v, t):
    return v.flatten(1) * 2


def cut(v, t):
    return v.reshape([t, 3, 4])


def merge_and_cut(v, t):
    return (v.reshape(t, -1) + 1).view(t, v.size(1), v.size(2)) - 1


def cut_pairs(v, t):
    return v.unflatten(-1, (2, 2))


def units(v, t):
    return v.reshape(t, 1, v.size(1), 1, v.size(2)).squeeze(1).squeeze(-2)


def permute(v, t):
    return v.permute(0, 2, 1)


def there_and_back(v, t):
    return (v.permute(2, 0, 1) + 1).permute(1, 2, 0)


def transpose(v, t):
    return v.transpose(-1, 1).contiguous()


def matrix_transpose(v, t):
    return v.mT + 0.5


def move_dimension(v, t):
    return torch.movedim(v, 1, -1)


def new_axes(v, t):
    return v[:, None, :, None] + v.sum(1)[:, None, None, None]


def ellipsis_axis(v, t):
    return v[..., None] * 2


def unsqueeze(v, t):
    return v.unsqueeze(1).unsqueeze(-1).squeeze(1)


def expand(v, t):
    return v[:, None].expand(t, 5, -1, -1)


def expand_as(v, t):
    return v.sum(1, keepdim=True).expand_as(v)


def broadcast_to(v, t):
    return torch.broadcast_to(v[:, None], [t, 3, v.size(1), v.size(2)])


def stack_two(v, t):
    return torch.stack([v, v * 2], dim=1)


def stack_three(v, t):
    return torch.stack((v, v + 0.5, -v), dim=-1)


def concatenate(v, t):
    return torch.cat([v, v * 2, -v], dim=2)


def split(v, t):
    even, odd = hl.split(v.reshape(t, v.size(1), v.size(2) // 2, 2))
    return even - 2 * odd


def rotate(v, t):
    even, odd = hl.split(v.reshape(t, v.size(1), v.size(2) // 2, 2))
    return hl.join(-odd, even).reshape(t, v.size(1), v.size(2))


def join_broadcasts(v, t):
    return hl.join(v, v.sum(2, keepdim=True))


def subscript(v, t):
    return hl.subscript(v, [slice(None), None, slice(None), slice(None), None])


def merged_sum(v, t):
    return (v + 1).reshape(t, -1).sum(1)


def merged_softmax(v, t):
    return torch.softmax(v.flatten(1) / 10, 1)


def stacked_sum(v, t):
    return torch.stack([v, v + 1, v + 2], 1).exp2().sum(1)


VIEWS = [
    (merge, (3, 4)),
    (merge, (1, 6)),
    (merge_the_rest, (4, 8)),
    (flatten, (3, 8)),
    (cut, (12,)),
    (merge_and_cut, (5, 4)),
    (cut_pairs, (3, 4)),
    (units, (3, 6)),
    (permute, (3, 6)),
    (there_and_back, (3, 5)),
    (transpose, (3, 5)),
    (matrix_transpose, (6, 7)),
    (move_dimension, (3, 5)),
    (new_axes, (3, 5)),
    (ellipsis_axis, (3, 5)),
    (unsqueeze, (3, 5)),
    (expand, (3, 6)),
    (expand_as, (3, 6)),
    (broadcast_to, (3, 5)),
    (stack_two, (3, 5)),
    (stack_three, (3, 5)),
    (concatenate, (3, 4)),
    (split, (3, 8)),
    (rotate, (3, 8)),
    (join_broadcasts, (3, 5)),
    (subscript, (3, 5)),
    (merged_sum, (3, 4)),
    (merged_softmax, (3, 4)),
    (stacked_sum, (3, 5)),
]


# What torch has no name for.
IN_TORCH = {
    split: lambda v: v[..., 0::2] - 2 * v[..., 1::2],
    rotate: lambda v: torch.stack([-v[..., 1::2], v[..., 0::2]], -1).flatten(-2),
    join_broadcasts: lambda v: torch.stack([v, v.sum(2, keepdim=True).expand_as(v)], -1),
    subscript: lambda v: v[:, None, :, :, None],
}


def name_of(value):
    return getattr(value, "__name__", None) or "x".join(map(str, value))


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("view", "shape"), VIEWS, ids=name_of)
def test_rows(view, shape, static):
    x = numbers(7, *shape)
    want = IN_TORCH[view](x) if view in IN_TORCH else view(x, 7)
    out, eager = torch.zeros_like(want), torch.zeros_like(want)
    for tensor in (x, out):
        for axis in range(1, tensor.dim()):
            torch._dynamo.mark_static(tensor, axis)
    compiled(rows, 4, static_shapes=static)(x, out, view)
    # Sums over a block are in another order than torch's.
    torch.testing.assert_close(out, want, rtol=1e-6, atol=1e-6)
    helion.kernel(rows, ref_mode=helion.RefMode.EAGER)(x, eager, view)
    torch.testing.assert_close(eager, want, rtol=1e-6, atol=1e-6)


def swapped(x):
    out = x.new_zeros([x.size(0), x.size(2), 1, x.size(1)])
    for t in hl.tile(x.size(0)):
        out[t] = (x[t] + 1).permute(2, 0, 1).transpose(0, 1)[:, :, None]
    return out


def test_axes_of_any_length():
    kernel = compiled(swapped, 2, static_shapes=False)
    for shape in ((5, 3, 6), (1, 1, 1), (4, 7, 1)):
        x = numbers(*shape)
        assert torch.equal(kernel(x), (x + 1).mT[:, :, None])


# -- two tiles -----------------------------------------------------------------------------------


def transposed(x, out):
    for i, j in hl.tile(x.size()):
        out[j, i] = x[i, j].T


def twice(x, out):
    for i, j in hl.tile(x.size()):
        out[j, i] = (x[i, j].t() + 1).transpose(0, 1).t() - 1


def of_the_host(x, out):
    for i, j in hl.tile(x.size()):
        out.T[i, j] = x.mT[j, i].T


@pytest.mark.parametrize("kernel", [transposed, twice, of_the_host])
def test_transposes_of_tiles(kernel):
    x = numbers(7, 5)
    out = torch.zeros(5, 7, device=DEVICE)
    compiled(kernel, 4, 2)(x, out)
    assert torch.equal(out, x.T)


# -- lanes past the end --------------------------------------------------------------------------


def sum_of_all(x, out):
    for t in hl.tile(x.size(0)):
        out[t.id] = (x[t, :] + 1).reshape(-1).sum()


def largest_of_all(x, out):
    for t in hl.tile(x.size(0)):
        out[t.id] = (x[t, :] * -1).flatten().amax()


def sum_after_stack(x, out):
    for t in hl.tile(x.size(0)):
        both = torch.stack([x[t, :], x[t, :] + 1], 1)
        out[t.id] = (both.reshape([t.block_size * 2, x.size(1)]) + 1).sum(0).sum(0)


def sum_after_transpose(x, out):
    for t in hl.tile(x.size(0)):
        out[t.id] = (x[t, :] + 1).T.reshape(-1).sum()


def sum_of_expanded(x, out):
    for t in hl.tile(x.size(0)):
        one = hl.full([1, x.size(1)], 1.0)
        out[t.id] = (one.expand(t, x.size(1)) + 1).sum()


@pytest.mark.parametrize(
    "kernel", [sum_of_all, largest_of_all, sum_after_stack, sum_after_transpose, sum_of_expanded]
)
def test_lanes_past_the_end_do_not_count(kernel):
    x, out, want = numbers(7, 8), torch.zeros(2, device=DEVICE), torch.zeros(2, device=DEVICE)
    compiled(kernel, 4)(x, out)
    for k, part in enumerate((x[:4], x[4:])):
        own = torch.zeros(1, device=DEVICE)
        helion.kernel(kernel, ref_mode=helion.RefMode.EAGER)(part, own)
        want[k] = own[0]
    assert torch.equal(out, want)


def shared_blocks(x, out):
    block = hl.register_block_size(16)
    for i in hl.tile(x.size(0), block_size=block):
        for j in hl.tile(x.size(1), block_size=block):
            out[i.id, j] = (x[i, j] + 1).sum(0)


def fixed_blocks(x, out):
    for i in hl.tile(x.size(0), block_size=4):
        out[i.id, :] = (x[i, :] + 1).sum(0) + (x[i, :] + 1).sum(1).sum(0)


def test_loops_may_share_a_block_size():
    x, out = numbers(7, 5), torch.zeros(2, 5, device=DEVICE)
    compiled(shared_blocks, 4)(x, out)
    assert torch.equal(out, torch.stack([(x[:4] + 1).sum(0), (x[4:] + 1).sum(0)]))


def test_a_fixed_block_is_not_an_axis_of_the_same_length():
    x, out = numbers(7, 4), torch.zeros(2, 4, device=DEVICE)
    helion.kernel(fixed_blocks, config=helion.Config())(x, out)
    parts = [p + 1 for p in (x[:4], x[4:])]
    assert torch.equal(out, torch.stack([p.sum(0) + p.sum() for p in parts]))


def picked(x, index, out):
    for t in hl.tile(x.size(0)):
        out[t, :] = torch.gather(x[t, :] + 1, 1, index[t, :])


def picked_rows(x, index, out):
    for t in hl.tile(x.size(1)):
        out[:, t] = torch.gather(x[:, t], 0, index[:, t] * 2 - 1) * 2


def test_gather():
    x, index = numbers(7, 6), torch.randint(0, 6, [7, 3], device=DEVICE)
    out = torch.zeros(7, 3, device=DEVICE)
    compiled(picked, 4)(x, index, out)
    assert torch.equal(out, torch.gather(x + 1, 1, index))
    x, index = numbers(6, 7), torch.randint(1, 4, [3, 7], device=DEVICE)
    out = torch.zeros(3, 7, device=DEVICE)
    compiled(picked_rows, 4)(x, index, out)
    assert torch.equal(out, torch.gather(x, 0, index * 2 - 1) * 2)


# -- errors --------------------------------------------------------------------------------------


def uneven(v, t):
    return torch.cat([v, v[:, None].sum(2)], 1)


def odd_split(v, t):
    return hl.split(v)[0]


def mixed_join(v, t):
    return hl.join(v, v.to(torch.int32))


def element(v, t):
    return hl.subscript(v, [slice(None), 0])


def host_split(x, out, view):
    for t in hl.tile(x.size(0), block_size=4):
        out[t] = hl.split(x)[0]


def split_tile(x, out, view):
    for t in hl.tile(x.size(0), block_size=4):
        out[t.id] = (x[t].reshape(2, 2, 3, 6) + 1).sum([0, 1, 2])


@pytest.mark.parametrize(
    ("kernel", "view", "shape", "error", "text"),
    [
        (rows, merge, [18], exc.BackendUnsupported, "would move the padding"),
        (rows, uneven, [4, 6], exc.BackendUnsupported, "different lengths: 3, 1"),
        (split_tile, None, [6], exc.BackendUnsupported, "a reshape has split"),
        (rows, odd_split, [3], exc.InvalidAPIUsage, "the shape is [t, 3, 6]"),
        (rows, mixed_join, [3, 6, 2], TypeError, "torch.float32 and torch.int32"),
        (rows, element, [3, 6], exc.InvalidIndexingType, "`None` and `:` only"),
        (host_split, None, [3], exc.InvalidAPIUsage, "must be a device value"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_errors(kernel, view, shape, error, text):
    x = numbers(7, 3, 6)
    with pytest.raises(error) as caught:
        compiled(kernel, *([4] if kernel is rows else []))(
            x, torch.zeros(7, *shape, device=DEVICE), view
        )
    assert text in str(caught.value)
