#!/usr/bin/env python3
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# mpirun -n 2 --mca pml umrddt python3 mpi4py_tensors.py [--seconds-at-most N]
#
# Slices of PyTorch tensors and CuPy arrays between two GPUs, as derived datatypes and without .contiguous():
# columns, faces of cubes, transposes, rows in any order, reversed halos. Every byte of both arrays is checked. The
# answer is sent into another layout of the same shape. Prints a line a case, with the median time one way, and of the
# same done by hand (.contiguous(), send, copy back). Exit status 0: all right; 77: no mpi4py, no GPU, neither library.

import os
import statistics
import sys
import time

os.environ.setdefault("MPI4PY_RC_THREAD_LEVEL", "serialized")


def skip(why):
    print("mpi4py_tensors: skipped: " + why)
    sys.exit(77)


try:
    from mpi4py import MPI
except ImportError as e:
    skip(str(e))
libraries = []
try:
    import torch
    if torch.cuda.is_available():
        libraries.append("torch")
except ImportError:
    torch = None
try:
    import cupy
    if 0 < cupy.cuda.runtime.getDeviceCount():
        libraries.append("cupy")
except Exception:
    cupy = None
if not libraries:
    skip("no GPU that PyTorch or CuPy can use")
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
if 2 != size:
    skip("this is for two ranks")
kinds = {"float64": MPI.DOUBLE, "float32": MPI.FLOAT, "int32": MPI.INT, "int8": MPI.SIGNED_CHAR}


class Torch:
    name = "torch"

    def __init__(self):
        self.gpu = rank % torch.cuda.device_count()
        torch.cuda.set_device(self.gpu)

    def array(self, shape, kind, value):
        n = 1
        for length in shape:
            n *= length
        flat = torch.arange(n, device="cuda") * 7 + value
        return (flat % 120).to(getattr(torch, kind)).reshape(shape)

    def filled(self, shape, kind, value):
        return torch.full(shape, value, dtype=getattr(torch, kind), device="cuda")

    def wait(self):
        torch.cuda.synchronize()

    def layout(self, view):
        item = view.element_size()
        return view.data_ptr(), [(n, s * item) for n, s in zip(view.shape, view.stride())]

    def start(self, array):
        return array.data_ptr()

    def same(self, a, b):
        return bool(torch.equal(a, b))

    def packed(self, view):
        return view.contiguous()

    def copy(self, array):
        return array.clone()


class CuPy:
    name = "cupy"

    def __init__(self):
        self.gpu = rank % cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.Device(self.gpu).use()

    def array(self, shape, kind, value):
        n = 1
        for length in shape:
            n *= length
        return ((cupy.arange(n) * 7 + value) % 120).astype(kind).reshape(shape)

    def filled(self, shape, kind, value):
        return cupy.full(shape, value, dtype=kind)

    def wait(self):
        cupy.cuda.runtime.deviceSynchronize()

    def layout(self, view):
        return view.data.ptr, list(zip(view.shape, view.strides))

    def start(self, array):
        return array.data.ptr

    def same(self, a, b):
        return bool((a == b).all())

    def packed(self, view):
        return cupy.ascontiguousarray(view)

    def copy(self, array):
        return array.copy()


def datatype(layout, kind):
    """A view as a committed datatype, in the order of its indices."""
    made = []
    old = kinds[kind]
    for n, stride in reversed(layout):
        old = old.Create_hvector(n, 1, stride)
        made.append(old)
    for step in made[:-1]:
        step.Free()
    old.Commit()
    return old


def buffer(address):
    return MPI.memory.fromaddress(address, 1 << 20) if hasattr(MPI, "memory") else MPI.buffer.fromaddress(address, 1 << 20)


def views(array):
    """What is sent of an array of three dimensions, and of one of the same size."""
    return [
        ("face z", array[2, :, :]),
        ("face y", array[:, 3, :]),
        ("face x", array[:, :, 1]),
        ("every second", array[::2, 1::2, :]),
        ("transposed", array[5, :, :].T),
        ("all axes swapped", array[:32, :16, :8].T),
        ("one line", array[7, :, 9]),
    ]


def exchange(lib, address, sent, received_at, received):
    if 0 == rank:
        world.Send([buffer(address), 1, sent], dest=1, tag=3)
        world.Recv([buffer(received_at), 1, received], source=1, tag=4)
    else:
        world.Recv([buffer(received_at), 1, received], source=0, tag=3)
        world.Send([buffer(address), 1, sent], dest=0, tag=4)


def timed(work, limit):
    times = []
    for i in range(60):
        world.Barrier()
        begin = time.perf_counter()
        work()
        if 10 <= i:
            times.append((time.perf_counter() - begin) / 2 * 1e6)
    return statistics.median(times)


failures = 0
for lib in [{"torch": Torch, "cupy": CuPy}[name]() for name in libraries]:
    for kind in kinds:
        shape = (64, 48, 40)
        for number in range(len(views(lib.array(shape, kind, 0)))):
            source = lib.array(shape, kind, 1 + rank)
            target = lib.filled(shape, kind, 121)
            name, out = views(source)[number]
            # what the other side sends, and where it shall be; all else stays
            theirs = views(lib.array(shape, kind, 2 - rank))[number][1]
            expected = lib.copy(target)
            into = views(target)[number][1]
            views(expected)[number][1][...] = theirs
            kept = lib.copy(source)
            address, sent = lib.layout(out)
            at, received = lib.layout(into)
            sent, received = datatype(sent, kind), datatype(received, kind)
            lib.wait()
            world.Barrier()
            exchange(lib, address, sent, at, received)
            good = lib.same(target, expected) and lib.same(source, kept)
            us = by_hand = 0.0
            if "float64" == kind:
                us = timed(lambda: exchange(lib, address, sent, at, received), 60)
                flat = MPI.BYTE.Create_contiguous(sent.Get_size()).Commit()
                landing = lib.packed(out)

                def hand():
                    packed = lib.packed(out)
                    lib.wait()
                    if 0 == rank:
                        exchange(lib, lib.start(packed), flat, lib.start(landing), flat)
                    else:
                        exchange(lib, lib.start(packed), flat, lib.start(landing), flat)
                    into[...] = landing
                    lib.wait()

                by_hand = timed(hand, 60)
                flat.Free()
            sent.Free()
            received.Free()
            all_good = world.allreduce(1 if good else 0, op=MPI.MIN)
            if 0 == rank:
                print("%s\t%s\t%s\t%s\t%.1f us\tby hand %.1f us" %
                      ("ok" if all_good else "FAILED", lib.name, kind, name, us, by_hand), flush=True)
            failures += 1 - all_good
if 0 == rank:
    print("mpi4py_tensors: %d failures" % failures)
sys.exit(0 if 0 == failures else 1)
