/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * The table of MCA parameters: members of mca_coll_umrddt_params_t, defaults, limits and help
 * texts. coll_umrddt_component.c registers them; docs/parameters.rst describes them.
 */

#ifndef MCA_COLL_UMRDDT_PARAMS_H
#define MCA_COLL_UMRDDT_PARAMS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* X(type, name, level, default, least, most, help text); limits of UINT and SIZE */
#define MCA_COLL_UMRDDT_PARAMS(X) \
    X(INT, priority, 6, 95, 0, 0, \
      "Priority of the component; must be higher than that of the " \
      "components that do the work. Negative: not used, and collectives " \
      "on GPU memory fail, or are handled by an Open MPI with CUDA") \
    X(SIZE, pinned, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bytes of pml_umrddt_gpu_pinned, at most, for the buffers of collectives on GPU memory; " \
      "larger ones use pageable memory, which is slower") \
    X(BOOL, direct, 5, true, 0, 0, \
      "Send the data of collectives from GPU to GPU: of blocking ones if all processes have " \
      "their buffers in GPU memory; false: through system memory. The same in all processes") \
    X(SIZE, direct_min, 6, 4096, 1, SIZE_MAX, \
      "Parts of a collective with fewer bytes go through system memory, without an " \
      "agreement of the processes. Exceptions: few processes on one node. The same " \
      "in all processes") \
    X(UINT, direct_messages, 9, 64, 1, INT_MAX, \
      "Messages from GPU to GPU that a collective has in progress, in each direction. The same " \
      "in all processes") \
    X(SIZE, segment, 6, (size_t) 4 << 20, 4096, SIZE_MAX, \
      "Reductions in GPU memory transfer and combine at most so many bytes of each " \
      "process at once. The same in all processes")

#define MCA_COLL_UMRDDT_C_INT  int
#define MCA_COLL_UMRDDT_C_BOOL bool
#define MCA_COLL_UMRDDT_C_UINT unsigned
#define MCA_COLL_UMRDDT_C_SIZE size_t

/* clang-format on */

#define MCA_COLL_UMRDDT_PARAM(type, name, level, initial, least, most, help) \
    MCA_COLL_UMRDDT_C_##type name;
typedef struct mca_coll_umrddt_params_t {
    MCA_COLL_UMRDDT_PARAMS(MCA_COLL_UMRDDT_PARAM)
} mca_coll_umrddt_params_t;

#endif /* MCA_COLL_UMRDDT_PARAMS_H */
