# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Puts the arrays of numpy, or what PETSc or PyTorch allocate, into the memory of software GPUs (program_memory.c)."""

import ctypes
import os

# PyDataMem_SetHandler in numpy's table of functions. The table only grows.
SET_HANDLER = 304


def begin():
    """Begins CUDA on the device of this rank. Returns the library, or None if the job wants no GPU memory."""
    path = os.environ.get("UMRDDT_TEST_PROGRAM_MEMORY")
    if not path:
        return None
    library = ctypes.CDLL(path)
    error = library.program_memory_begin(int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")))
    if error:
        raise SystemExit("program_memory: the CUDA driver cannot be used (%d)" % error)
    return library


def blocks(library):
    """The number of blocks of GPU memory that were allocated."""
    return 0 if library is None else ctypes.c_ulong.in_dll(library, "program_memory_blocks").value


def for_numpy():
    """From now on new arrays are in GPU memory."""
    library = begin()
    if library is None:
        return None
    try:
        from numpy._core import _multiarray_umath as umath
    except ImportError:
        from numpy.core import _multiarray_umath as umath
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    handler = ctypes.addressof(ctypes.c_char.in_dll(library, "program_memory_numpy"))
    for_numpy.name = b"mem_handler"  # the capsule does not copy it
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])(new(handler, for_numpy.name, None))
    return library


def for_petsc(path):
    """From now on PETSc's memory is GPU memory. PATH is its shared library. To be called before PETSc is initialized."""
    library = begin()
    if library is None:
        return None
    petsc = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    error = petsc.PetscMallocSet(library.program_memory_petsc_malloc, library.program_memory_petsc_free,
                                 library.program_memory_petsc_realloc)
    if error:
        raise SystemExit("program_memory: PetscMallocSet failed (%d)" % error)
    return library


def for_torch():
    """From now on the tensors of PyTorch are in GPU memory, those of the CPU too. The library must be preloaded."""
    library = begin()
    if library is None:
        return None
    import torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    if library.program_memory_torch():
        raise SystemExit("program_memory: PyTorch's allocations cannot be replaced")
    return library
