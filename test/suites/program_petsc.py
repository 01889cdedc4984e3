# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Ghost points of distributed arrays of PETSc (DMDA), in its memory of GPUs.

usage (in a job): program_petsc.py LIBPETSC
"""

import sys

import numpy
import program_memory

library = program_memory.for_petsc(sys.argv[1])

import petsc4py  # noqa: E402 (PETSc's memory is decided before)

petsc4py.init([])
from petsc4py import PETSc  # noqa: E402


def value(x, y, z, dof):
    """What a grid point has; the same on each process."""
    return 1.0 + x + 100.0 * y + 10000.0 * z + 1e6 * dof


def exchange(sizes, dof, width, stencil, boundary):
    """The ghost points of all processes after globalToLocal, and the sums of localToGlobal."""
    grid = PETSc.DMDA().create(sizes=sizes, dof=dof, stencil_width=width, stencil_type=stencil, boundary_type=boundary)
    owned, local = grid.createGlobalVec(), grid.createLocalVec()
    ranges = grid.getRanges()
    array = grid.getVecArray(owned)
    points = numpy.meshgrid(*[numpy.arange(a, b) for a, b in ranges], indexing="ij")
    for i in range(dof):
        array[tuple(slice(a, b) for a, b in ranges) + ((i,) if dof > 1 else ())] = value(*points, i)
    del array
    for _ in range(3):
        local.set(-1.0)
        grid.globalToLocal(owned, local)
        ghosts = grid.getGhostRanges()
        array = grid.getVecArray(local)
        points = numpy.meshgrid(*[numpy.arange(a, b) for a, b in ghosts], indexing="ij")
        points = [p % n for p, n in zip(points, sizes)]
        # Of a star, the corners are not defined.
        outside = sum(((p < a) | (p >= b)).astype(int) for p, (a, b) in zip(
            numpy.meshgrid(*[numpy.arange(a, b) for a, b in ghosts], indexing="ij"), ranges))
        wanted = outside <= (3 if stencil == PETSc.DMDA.StencilType.BOX else 1)
        for i in range(dof):
            got = array[tuple(slice(a, b) for a, b in ghosts) + ((i,) if dof > 1 else ())]
            if not numpy.array_equal(numpy.asarray(got)[wanted], value(*points, i)[wanted]):
                raise SystemExit("FAILED: ghost points of %s x %d differ" % (sizes, dof))
        del array
    total = owned.duplicate()
    total.set(0.0)
    local.set(1.0)
    grid.localToGlobal(local, total, addv=PETSc.InsertMode.ADD_VALUES)
    if total.min()[1] < 1.0:
        raise SystemExit("FAILED: localToGlobal lost points")
    for thing in (total, local, owned, grid):
        thing.destroy()


box, star = PETSc.DMDA.StencilType.BOX, PETSc.DMDA.StencilType.STAR
exchange((24, 20, 16), 1, 1, star, ("periodic",) * 3)
exchange((24, 20, 16), 5, 2, box, ("periodic",) * 3)
exchange((40, 33, 17), 3, 1, box, ("none",) * 3)
if PETSc.COMM_WORLD.rank == 0:
    print("ended DMDA, blocks of GPU memory: %d" % program_memory.blocks(library))
