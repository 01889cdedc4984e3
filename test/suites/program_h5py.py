# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Collective hyperslabs of HDF5: parts of arrays in memory to and from parts of a file.

usage (in a job): program_h5py.py FILE
"""

import sys

from mpi4py import MPI

import h5py
import numpy

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
ROWS, COLUMNS = 96, 60


def value(of, shape, salt):
    """What the array of a rank has."""
    return numpy.arange(numpy.prod(shape), dtype=numpy.float64).reshape(shape) + 1e6 * of + 1e8 * salt


# Of each: the shape of an array in memory, its hyperslab, and the place of a rank in the file, whose shape is WHOLE.
WHOLE = (ROWS, COLUMNS * size)
CASES = {
    "inner": ((ROWS + 2, COLUMNS + 2), numpy.s_[1:-1, 1:-1],
              lambda of: numpy.s_[:, of * COLUMNS:(of + 1) * COLUMNS]),
    "columns": ((ROWS, 2 * COLUMNS), numpy.s_[:, ::2],
                lambda of: numpy.s_[:, of::size]),
    "blocks": ((ROWS * size, COLUMNS + 5), numpy.s_[::size, 5:],
               lambda of: numpy.s_[:, of * COLUMNS:(of + 1) * COLUMNS]),
}

with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    for salt, (name, (shape, memory, place)) in enumerate(CASES.items()):
        data = file.create_dataset(name, WHOLE, dtype="f8")
        with data.collective:
            data.write_direct(value(rank, shape, salt), source_sel=memory, dest_sel=place(rank))
    for salt, (name, (shape, memory, place)) in enumerate(CASES.items()):
        other = (rank + 1) % size
        got = numpy.full(shape, -1.0)
        with file[name].collective:
            file[name].read_direct(got, source_sel=place(other), dest_sel=memory)
        wanted = numpy.full(shape, -1.0)
        wanted[memory] = value(other, shape, salt)[memory]
        if not numpy.array_equal(got, wanted):
            raise SystemExit("FAILED: rank %d: %s, read" % (rank, name))
comm.Barrier()
# The same file without MPI.
if rank == 0:
    with h5py.File(sys.argv[1], "r") as file:
        for salt, (name, (shape, memory, place)) in enumerate(CASES.items()):
            for of in range(size):
                if not numpy.array_equal(file[name][place(of)], value(of, shape, salt)[memory]):
                    raise SystemExit("FAILED: %s of rank %d in the file" % (name, of))
    print("ended h5py, %d datasets" % len(CASES), flush=True)
