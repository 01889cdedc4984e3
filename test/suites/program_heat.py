# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Communication and manipulations of Heat's arrays, whose tensors are in memory of GPUs.

usage (in a job): program_heat.py
"""

from mpi4py import MPI  # MPI begins before CUDA, as in most programs

import numpy
import program_memory

library = program_memory.for_torch()

import torch  # noqa: E402 (its memory is decided before)
import heat as ht  # noqa: E402

comm = ht.MPI_WORLD
rank, size = comm.rank, comm.size
before = program_memory.blocks(library)


def require(what, good):
    """Ends the job if a result is wrong."""
    if not good:
        raise SystemExit("FAILED: rank %d: %s" % (rank, what))


def same(what, array, wanted):
    """Compares an array of Heat, which is gathered by it, with one of numpy."""
    require(what, numpy.array_equal(array.numpy(), wanted))


def strided(salt):
    """A tensor that is not contiguous, the same on each process for the same SALT."""
    return torch.arange(40 * 24 * 3, dtype=torch.float64).reshape(40, 24, 3).permute(1, 0, 2) + 1e6 * salt


# Communication: Heat makes a datatype of vectors for each tensor with strides.
right, left = (rank + 1) % size, (rank - 1) % size
got = torch.zeros(40, 24, 3, dtype=torch.float64).permute(1, 0, 2)
request = comm.Isend(strided(rank), dest=right, tag=3)
comm.Recv(got, source=left, tag=3)
request.Wait()
require("Isend, Recv", torch.equal(got, strided(left)))
request = comm.Irecv(got, source=right, tag=4)
comm.Send(strided(10 + rank), dest=left, tag=4)
request.Wait()
require("Send, Irecv", torch.equal(got, strided(10 + right)))
got = strided(20 + rank)
comm.Bcast(got, root=size - 1)
require("Bcast", torch.equal(got, strided(20 + size - 1)))
got = torch.zeros(size, 24, 40, 3, dtype=torch.float64)
comm.Allgather(strided(30 + rank).unsqueeze(0), got)
require("Allgather", all(torch.equal(got[i], strided(30 + i)) for i in range(size)))

# Manipulations of arrays that are distributed along one of their axes.
whole = numpy.arange(48 * 36 * 20, dtype=numpy.float32).reshape(48, 36, 20)
for split in range(3):
    array = ht.array(whole, split=split)
    for axis in range(3):
        same("resplit %d, %d" % (split, axis), ht.resplit(array, axis), whole)
    same("transpose %d" % split, ht.transpose(array, (2, 0, 1)), whole.transpose(2, 0, 1))
    same("flip %d" % split, ht.flip(array, split), numpy.flip(whole, split))
    same("roll %d" % split, ht.roll(array, 5, split), numpy.roll(whole, 5, split))
    same("concatenate %d" % split, ht.concatenate((array, array), axis=split), numpy.concatenate((whole, whole), axis=split))
    same("reshape %d" % split, ht.reshape(array, (36, 960), new_split=split % 2), whole.reshape(36, 960))
    same("sort %d" % split, ht.sort(-array, axis=split)[0], numpy.sort(-whole, axis=split))
    require("sum %d" % split, float(ht.sum(array.astype(ht.float64))) == whole.sum(dtype=numpy.float64))
MPI.COMM_WORLD.Barrier()
if rank == 0:
    print("ended Heat, blocks of GPU memory: %d" % (program_memory.blocks(library) - before))
