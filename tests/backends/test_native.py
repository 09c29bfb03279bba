"""What only compiled code with threads can do wrong. Equality with the formula is tested with the transforms."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

import laconic
from laconic.backends import native

needs_native = pytest.mark.skipif(not native.available(), reason="the native body is not built, or switched off")


def run_python(code: str, **env: str) -> str:
    """Runs code in a process of its own, for at most a minute."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_native
def test_fork_after_use_hangs_the_child() -> None:
    out = run_python("""
        import os, signal, torch, laconic
        codec, x = laconic.codec("dct:chop=4"), torch.rand(64, 256, 256)
        before = codec.encode(x).parts["main"]
        child = os.fork()
        signal.alarm(30)
        if child == 0:
            assert torch.equal(codec.encode(x).parts["main"], before)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("both")
    """)
    assert out.strip() == "both"


@needs_native
def test_loader_workers_hang() -> None:
    out = run_python("""
        import torch, laconic
        codec = laconic.codec("dct:chop=4")
        class Images(torch.utils.data.Dataset):
            def __len__(self): return 8
            def __getitem__(self, i): return codec.encode(torch.full((64, 256, 256), float(i)))
        codec.encode(torch.rand(64, 256, 256))
        loader = torch.utils.data.DataLoader(Images(), batch_size=2, num_workers=2, collate_fn=laconic.stack,
                                             multiprocessing_context="fork")
        print([laconic.decode(batch).mean(dim=(1, 2, 3)).round().tolist() for batch in loader])
    """)
    assert out.strip() == "[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]"


@needs_native
def test_threads_tread_on_each_other() -> None:
    codec = laconic.codec("dct:chop=4,keep=triangle")
    inputs = [torch.rand(16, 3, 64, 100) for _ in range(6)]
    expected = [codec.encode(x).parts["main"] for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            enc = codec.encode(inputs[i])
            if not torch.equal(enc.parts["main"], expected[i]):
                wrong.append(i)
            laconic.decode(enc)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


@needs_native
@pytest.mark.parametrize("spec", ["dct:chop=4", "dct:chop=7,keep=triangle", "zfp:chop=3", "hadamard:chop=16,block=32"])
def test_values_depend_on_the_number_of_threads(spec: str) -> None:
    x = torch.rand(20, 3, 77, 130)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            enc = laconic.encode(x, spec)
            found.append((enc.parts["main"], laconic.decode(enc)))
    finally:
        torch.set_num_threads(threads)
    for coefficients, pixels in found[1:]:
        assert torch.equal(coefficients, found[0][0])
        assert torch.equal(pixels, found[0][1])


@needs_native
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_an_instruction_set_gives_other_values(isa: str) -> None:
    """On a machine without it the next lower one runs, and must agree too."""
    out = run_python(
        """
        import torch, laconic
        from laconic.backends import native
        from laconic.ops import block as ops
        from laconic.transforms.block import matrix
        from laconic.registry import find
        worst = 0.0
        for name, block in [("dct", 4), ("dct", 8), ("dct", 16), ("dct", 32), ("zfp", 4), ("hadamard", 8)]:
            for chop in range(1, block + 1, 1 if block < 16 else 5):
                for keep in (False, True):
                    for shape in [(2, 24, 40), (1, 13, 300), (9, 1)]:
                        x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
                        basis = matrix(find(name), block, "analysis", x.device)
                        y = torch.ops.laconic.block_encode(x, basis, chop, keep)
                        expected = torch.empty_like(y)
                        ops.reference_encode(x, basis, chop, keep, expected)
                        worst = max(worst, float((y - expected).abs().max() / x.abs().max()))
                        basis = matrix(find(name), block, "synthesis", x.device)
                        z = torch.ops.laconic.block_decode(y, basis, chop, keep, *shape[-2:], x.dtype)
                        expected = torch.empty_like(z)
                        ops.reference_decode(y, basis, chop, keep, expected)
                        worst = max(worst, float((z - expected).abs().max() / x.abs().max()))
        print(native.core().isa(), worst)
        """,
        LACONIC_ISA=isa,
    )
    chosen, worst = out.split()
    order = ["baseline", "avx2", "avx512"]
    assert order.index(chosen) <= order.index(isa)
    assert float(worst) < 3e-5  # of values whose block gain is up to 32


@needs_native
def test_a_temporary_is_larger_than_the_output() -> None:
    """Channels-last, uint8 and padded inputs too: the peak may grow by the output, and a little for the threads."""
    out = run_python("""
        import resource, torch, laconic
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        codec = laconic.codec("dct:chop=2")
        codec.encode(torch.rand(4, 3, 64, 64)); codec.encode(torch.zeros(3, 64, 64, dtype=torch.uint8))
        x = torch.rand(60, 3, 509, 509).contiguous(memory_format=torch.channels_last)
        u = torch.zeros(60, 3, 509, 509, dtype=torch.uint8)
        before = peak()
        enc = codec.encode(x)
        codec.encode(u)
        print((peak() - before) / enc.nbytes)
    """)
    assert float(out) < 2.5  # two outputs, and the allocator's change


def test_bytes_that_lie_at_odd_addresses_crash_the_kernels() -> None:
    codec, x = laconic.codec("dct:chop=4"), torch.rand(8, 1024, 1024)
    enc = codec.encode(x)
    odd = torch.frombuffer(bytearray(x.nbytes + 64), dtype=torch.float32, offset=1, count=x.numel()).view(x.shape)
    assert torch.allclose(laconic.decode(enc, out=odd), laconic.decode(enc), atol=1e-5)
    assert torch.allclose(codec.encode(odd).parts["main"], codec.encode(odd.clone()).parts["main"], atol=1e-5)
    room = torch.frombuffer(bytearray(enc.nbytes), dtype=torch.float32, offset=1, count=x.numel() // 4)
    odd_room = laconic.Encoded(enc.chain, enc.specs, {"main": room.view(8, 512, 512)})
    assert torch.allclose(codec.encode(x, out=odd_room).parts["main"], enc.parts["main"], atol=1e-5)


def test_without_the_native_part_nothing_works() -> None:
    out = run_python(
        """
        import torch, laconic
        from laconic.backends import native
        x = torch.rand(3, 20, 20)
        print(native.available(), torch.allclose(laconic.codec("dct:chop=8").roundtrip(x), x, atol=1e-5))
        """,
        LACONIC_NATIVE="0",
        PYTHONWARNINGS="error",
    )
    assert out.split() == ["False", "True"]


def test_a_missing_native_part_slows_everything_in_silence() -> None:
    out = run_python(
        """
        import sys, warnings
        sys.modules["laconic.backends.native._core"] = None  # as if it had never been built
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch, laconic
            laconic.encode(torch.rand(8, 8), "dct:chop=4")
            laconic.encode(torch.rand(8, 8), "zfp:chop=2")
        print([str(w.message)[:31] for w in caught if w.category is RuntimeWarning])
        """,
        LACONIC_NATIVE="1",
    )
    assert out.strip() == "['laconic runs in pure Python, ma']"
