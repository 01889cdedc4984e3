# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Runs programs of Python in one MPI process, one after the other, unmodified.

usage (in a job): program_driver.py PROGRAM[:FUNCTION]...

With FUNCTION, it alone is called, and the program's own main part is not run.

With UMRDDT_TEST_PROGRAM_MEMORY, the arrays of numpy are in GPU memory (program_memory.py).
"""

import runpy
import sys

from mpi4py import MPI  # MPI begins before CUDA, as in most programs

import numpy
import program_memory

library = program_memory.for_numpy()
numpy.random.seed(MPI.COMM_WORLD.rank)
for word in sys.argv[1:]:
    before = program_memory.blocks(library)
    path, _, function = word.partition(":")
    if function:
        runpy.run_path(path, run_name="program")[function]()
    else:
        runpy.run_path(path, run_name="__main__")
    if MPI.COMM_WORLD.rank == 0:
        print("ended %s, blocks of GPU memory: %d" % (word.rsplit("/", 1)[-1], program_memory.blocks(library) - before),
              flush=True)
