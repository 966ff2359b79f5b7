"""Launches past Triton's dispatch: they find the kernel that it would find, and pass the same."""

from __future__ import annotations

import itertools
import threading

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

import helion
import helion.language as hl
from helion import exc
from helion._compat import CudaLaunch
from helion.runtime.launch import Dispatch, Launcher

STREAM = 77


class OnGpu(torch.Tensor):
    """A tensor that claims to be in the memory of a GPU, at an address of our choice."""

    gpu = 0
    address = 4096
    is_cpu = False

    @property
    def device(self):
        return torch.device("cuda", self.gpu)

    def get_device(self):
        return self.gpu

    def data_ptr(self):
        return self.address


def on_gpu(dtype=torch.float32, gpu=0, address=4096) -> OnGpu:
    tensor = torch.empty(4, dtype=dtype).as_subclass(OnGpu)
    tensor.gpu, tensor.address = gpu, address
    return tensor


class CudaLauncher:
    """Stands for Triton's class of that name; `launch` stands for the C function it calls."""

    global_scratch_size = profile_scratch_size = 0
    launch_cooperative_grid, launch_pdl = False, True

    def __init__(self, launches, described):
        if described:  # as from Triton 3.7 on
            self.arg_annotations, self.kernel_signature = "annotations", "signature"
        self.launch = _Recorder(launches)

    def __call__(self, *args):
        raise AssertionError("Triton's dispatch goes on to the driver")


class _Recorder:
    def __init__(self, launches):
        self.launches = launches

    def __call__(self, *args):
        self.launches.append(args)


class FakeDriver:
    """A CUDA driver without a GPU: kernels are typed by Triton, and compiled to a number."""

    def __init__(self, described=True):
        self.device = 0
        self.compiled = []
        self.launches = []
        self.described = described

    def get_current_device(self):
        return self.device

    def get_current_stream(self, device):
        return STREAM + device

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def compile(self, src, **options):
        del options
        src.hash()  # as Triton does; it finds the globals that the function reads
        self.compiled.append((src.signature, src.attrs, src.constants))
        return _Compiled(len(self.compiled), CudaLauncher(self.launches, self.described))


class _Compiled:
    def __init__(self, function, run):
        self.function, self.packed_metadata = function, "metadata"
        self._launcher = run

    @property
    def run(self):
        return self._launcher

    def launch_metadata(self, *args):
        return None


def kernel_body(x, y, n, size, seed, p, flag, BLOCK: tl.constexpr):
    pass


PLAIN = (on_gpu(), on_gpu(), 48, 7, 3, 0.5, True, 128)


@pytest.fixture
def driver(monkeypatch):
    driver = FakeDriver()
    monkeypatch.setattr(triton.runtime.driver, "_active", driver)
    monkeypatch.setattr(triton.compiler, "compile", driver.compile)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns where it is unset
    monkeypatch.setattr(
        CudaLauncher, "__call__", lambda self, *args: driver.launches.append("slow")
    )
    return driver


def make_launcher(driver) -> Launcher:
    kernel = JITFunction(_body_with_wide_seed(), do_not_specialize=["size", "seed"])
    return Launcher(kernel, CudaLaunch(driver.get_current_device, driver.get_current_stream))


def _body_with_wide_seed():
    kernel_body.__annotations__ = {"seed": "tl.int64", "BLOCK": "tl.constexpr"}
    return kernel_body


def launch(launcher, *args, grid=(5,), warps=4, stages=1, **options):
    start = launcher.start_for(tuple(map(type, args)))
    start(grid, args, warps, stages, options)


def replaced(position, value):
    return (*PLAIN[:position], value, *PLAIN[position + 1 :])


# A change of one argument, and whether Triton compiles for it.
CHANGES = {
    "the same": (PLAIN, False),
    "another tensor": (replaced(0, on_gpu(address=8192)), False),
    "alignment": (replaced(0, on_gpu(address=4100)), True),
    "alignment of another": (replaced(1, on_gpu(address=4104)), True),
    "dtype": (replaced(0, on_gpu(torch.bfloat16)), True),
    "int, still divisible by 16": (replaced(2, 160), False),
    "int, not divisible by 16": (replaced(2, 49), True),
    "int, 1": (replaced(2, 1), True),
    "int, 0": (replaced(2, 0), False),
    "int, negative": (replaced(2, -16), False),
    "int of 64 bits": (replaced(2, 2**31), True),
    "int of 64 bits, negative": (replaced(2, -(2**31) - 16), True),
    "int, unsigned": (replaced(2, 2**63), True),
    "unspecialized int, 1": (replaced(3, 1), False),
    "unspecialized int, 16": (replaced(3, 16), False),
    "unspecialized int of 64 bits": (replaced(3, 2**40), True),
    "seed, 1": (replaced(4, 1), False),
    "seed, 16": (replaced(4, 16), False),
    "seed of 64 bits": (replaced(4, -(2**63)), False),
    "float": (replaced(5, 1.0), False),
    "int for a float": (replaced(5, 3), True),
    "bool": (replaced(6, False), False),
    "None": (replaced(1, None), True),
    "constexpr": (replaced(7, 64), True),
    "constexpr of another type": (replaced(7, True), True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_finds_what_triton_would_find(driver, case):
    args, compiles = CHANGES[case]
    launcher = make_launcher(driver)
    launch(launcher, *PLAIN)
    assert len(driver.compiled) == 1
    launch(launcher, *args)
    assert len(driver.compiled) == 1 + compiles
    # What Triton's own dispatch takes for these arguments.
    expected = launcher.dispatch((5,), args, 4, 1, {}).function
    assert len(driver.compiled) == 1 + compiles
    driver.launches.clear()
    launch(launcher, *args)
    (direct,) = driver.launches
    assert direct[4] == expected


def test_every_pair_of_changes(driver):
    launcher = make_launcher(driver)
    for first, second in itertools.product(CHANGES.values(), repeat=2):
        # Each change at its own place; two at one place leave the second.
        args = tuple(
            b if b is not plain else a
            for a, b, plain in zip(first[0], second[0], PLAIN, strict=True)
        )
        expected = launcher.dispatch((5,), args, 4, 1, {}).function
        compiled = len(driver.compiled)
        launch(launcher, *args)
        driver.launches.clear()
        launch(launcher, *args)
        assert driver.launches[0][4] == expected
        assert len(driver.compiled) == compiled


@pytest.mark.parametrize("described", [False, True], ids=["3.6", "3.7 to 3.9"])
def test_what_the_c_function_gets(driver, described):
    driver.described = described
    launcher = make_launcher(driver)
    for _ in range(2):
        launch(launcher, *PLAIN, grid=(5, 6))
    values = (4096, 4096, 48, 7, 3, 0.5, True, 128)
    where = (5, 6, 1, STREAM, 1, False, True)
    if described:
        rest = ("metadata", None, None, None, None, None, "annotations", "signature", values)
    else:
        rest = (None, None, "metadata", None, None, None, *values)
    assert driver.launches == ["slow", (*where, *rest)]


@pytest.mark.parametrize("grid", [(0,), (3, 0), (0, 1, 1)])
def test_an_empty_grid_launches_nothing(driver, grid):
    launcher = make_launcher(driver)
    for _ in range(2):
        launch(launcher, *PLAIN, grid=grid)
    assert (driver.compiled, driver.launches) == ([], [])
    launch(launcher, *PLAIN)
    launch(launcher, *PLAIN, grid=grid)
    assert driver.launches == ["slow"]


def test_options_are_part_of_the_key(driver):
    launcher = make_launcher(driver)
    ways = [{}, {"warps": 8}, {"stages": 3}, {"maxnreg": 64}, {"maxnreg": 128}]
    for way in [*ways, *ways]:
        launch(launcher, *PLAIN, **way)
    assert driver.launches[:5] == ["slow"] * 5
    assert [call[4] for call in driver.launches[5:]] == [1, 2, 3, 4, 5]


def test_each_device_has_its_own_kernel_and_stream(driver, monkeypatch):
    launcher = make_launcher(driver)

    class Device:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            self.before, driver.device = driver.device, self.device

        def __exit__(self, *error):
            driver.device = self.before

    monkeypatch.setattr(torch.cuda, "device", Device)
    for gpu in (0, 1, 0, 1):
        launch(launcher, on_gpu(gpu=gpu), on_gpu(gpu=gpu), *PLAIN[2:])
        assert driver.device == 0
    assert [call if call == "slow" else call[3:5] for call in driver.launches] == [
        "slow",
        "slow",
        (STREAM, 1),
        (STREAM + 1, 2),
    ]


@pytest.mark.parametrize("hook", ["enter", "exit", "replaced", "pre_run"])
def test_a_profiler_sees_every_launch(driver, monkeypatch, hook):
    launcher = make_launcher(driver)
    launch(launcher, *PLAIN)
    if hook == "replaced":
        monkeypatch.setattr(knobs.runtime, "launch_enter_hook", knobs.HookChain())
    elif hook == "pre_run":
        launcher.kernel.add_pre_run_hook(lambda *args, **kwargs: None)
    else:
        chain = getattr(knobs.runtime, f"launch_{hook}_hook")
        monkeypatch.setattr(chain, "calls", [lambda metadata: None])
    launch(launcher, *PLAIN)
    assert driver.launches == ["slow", "slow"]


@pytest.mark.parametrize("unfamiliar", ["scratch", "descriptors", "class"])
def test_an_unfamiliar_kernel_goes_through_triton(driver, monkeypatch, unfamiliar):
    if unfamiliar == "scratch":
        monkeypatch.setattr(CudaLauncher, "global_scratch_size", 64)
    elif unfamiliar == "descriptors":
        monkeypatch.setattr(_Compiled, "run", property(lambda self: _with_function(self._launcher)))
    else:
        monkeypatch.setattr(_Compiled, "run", property(lambda self: self._launcher.__call__))
    launcher = make_launcher(driver)
    for _ in range(3):
        launch(launcher, *PLAIN)
    assert driver.launches == ["slow"] * 3


def _with_function(run):
    run.launch = lambda *args: None
    return run


def test_arguments_without_a_short_key_go_through_triton(driver):
    launcher = make_launcher(driver)
    args = replaced(2, (1, 2))
    for _ in range(2):
        launch(launcher, *args)
    assert driver.launches == ["slow", "slow"]


def test_a_function_that_reads_globals_is_left_to_triton(driver, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(3))
    kernel = JITFunction(reads_a_global)
    launcher = Launcher(kernel, CudaLaunch(driver.get_current_device, driver.get_current_stream))
    for _ in range(2):
        launch(launcher, on_gpu())
    assert driver.launches == ["slow", "slow"]


def reads_a_global(x):
    tl.store(x, SCALE)  # noqa: F821 - set by the test


def test_threads_share_a_launcher(driver):
    launcher = make_launcher(driver)
    launch(launcher, *PLAIN)

    def run():
        for _ in range(200):
            launch(launcher, *PLAIN)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(driver.launches) == 801
    assert {call[4] for call in driver.launches[1:]} == {1}


# -- on a GPU ------------------------------------------------------------------------------------


@helion.kernel(static_shapes=False)
def scaled(x: torch.Tensor, seed: int, p: float) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.numel()):
        out[tile] = torch.where(hl.rand([tile], seed) >= p, x[tile], 0.0)
    return out


def expected(x, seed, p):
    index = torch.arange(x.numel(), device=x.device, dtype=torch.int64)
    out = torch.empty_like(x)
    _reference[(1,)](index, out, x, seed, p, x.numel(), 1024)
    return out


@triton.jit
def _reference(index, out, x, seed, p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    keep = tl.rand(seed, tl.load(index + i, mask)) >= p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask), 0.0), mask)


@pytest.mark.gpu
def test_direct_launches_are_right():
    base = torch.randn(1030, device="cuda")
    for x in (base[:1024], base[1:1001], base[4:5], base[:1023], base[:0], base.double()[:77]):
        for seed in (1, 16, 2**40, -1):
            for _ in range(2):
                assert torch.equal(scaled(x, seed, 0.5), expected(x, seed, 0.5))


@pytest.mark.gpu
def test_a_launch_takes_the_direct_path(monkeypatch):
    x = torch.randn(1024, device="cuda")
    scaled(x, 3, 0.5)

    def refuse(*args, **kwargs):
        raise AssertionError("Triton's dispatch ran")

    monkeypatch.setattr(JITFunction, "run", refuse)
    assert torch.equal(scaled(x, 4, 0.25) != 0, scaled(x, 4, 0.25) != 0)


@pytest.mark.gpu
def test_cuda_graph_and_streams():
    x = torch.randn(1000, device="cuda")
    right = scaled(x, 7, 0.5)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        on_stream = scaled(x, 7, 0.5)
    stream.synchronize()
    assert torch.equal(on_stream, right)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = scaled(x, 7, 0.5)
    x.add_(1.0)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, scaled(x, 7, 0.5))


@pytest.mark.gpu
def test_cpu_tensor_is_refused():
    x = torch.randn(8, device="cuda")
    scaled(x, 3, 0.5)
    with pytest.raises(exc.DeviceMismatch, match="`y` is on `cpu`, but the kernel runs on `cuda"):
        add(x, x.cpu())
    # Binding to see the code is no call: this is found when the kernel would start.
    add.bind((x.cpu(), x.cpu())).to_triton_code()
    with pytest.raises(exc.DeviceMismatch, match="`x` is on `cpu`, but the kernel runs on `cuda`"):
        add(x.cpu(), x.cpu())


def test_a_gpu_gets_no_tensor_of_the_cpu(monkeypatch):
    started = []

    class Compiled:
        arg_names = ("n", "x", "y")

        def __getitem__(self, grid):
            return lambda *args, **options: started.append(args)

    monkeypatch.setattr("helion.runtime.launch.is_interpreting", lambda: False)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    dispatch = Dispatch(Compiled()).dispatch
    on_gpu, on_cpu = torch.ones(8, device="meta"), torch.ones(8)
    dispatch((1,), (8, on_gpu, on_gpu), 4, 1, {})
    dispatch((0,), (8, on_gpu, on_cpu), 4, 1, {})
    assert len(started) == 1
    with pytest.raises(exc.DeviceMismatch, match="`y` is on `cpu`, but the kernel runs on `meta`"):
        dispatch((1,), (8, on_gpu, on_cpu), 4, 1, {})
    with pytest.raises(exc.DeviceMismatch, match="`x` is on `cpu`, but the kernel runs on `cuda`"):
        dispatch((1,), (8, on_cpu, on_cpu), 4, 1, {})


@helion.kernel(static_shapes=False)
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + y[tile]
    return out
