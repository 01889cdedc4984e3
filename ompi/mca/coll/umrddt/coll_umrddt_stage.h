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
 * System memory in place of buffers in device memory. See coll_umrddt.h first.
 */

#ifndef MCA_COLL_UMRDDT_STAGE_H
#define MCA_COLL_UMRDDT_STAGE_H

#include "coll_umrddt_side.h"

BEGIN_C_DECLS

/** System memory in place of buffers in device memory. */
typedef struct mca_coll_umrddt_stage_t mca_coll_umrddt_stage_t;

/**
 * Query the buffers of a call. Create a stage if one is in device memory that the other components
 * must not access. Copies nothing. In the steady state it allocates nothing if the pool of pinned
 * memory has space.
 *
 * @param[out] stage  NULL: pass the call through
 *
 * @retval OMPI_SUCCESS, MPI_ERR_NO_MEM, MPI_ERR_OTHER (driver error); an error was reported to the
 *     user
 */
int mca_coll_umrddt_stage_new(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_stage_t **stage);

/**
 * The two steps of mca_coll_umrddt_stage_new: query the buffers, and create a stage or pass the
 * call through. The first one gets a stage if it needs one for the query.
 */
int mca_coll_umrddt_stage_look(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage);
int mca_coll_umrddt_stage_fill(const mca_coll_umrddt_sides_t *sides,
                               const mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage);

/** Returns true if a call with such buffers is not passed through. */
static inline bool mca_coll_umrddt_needs_stage(const mca_coll_umrddt_sides_t *sides,
                                               const mca_coll_umrddt_look_t seen[2])
{
    return MCA_COLL_UMRDDT_GPU == seen[0] || MCA_COLL_UMRDDT_GPU == seen[1]
           || (sides->handled && sides->gpu);
}

/** Arguments for the saved function in place of the user's addresses. */
void *mca_coll_umrddt_stage_send(const mca_coll_umrddt_stage_t *stage);
void *mca_coll_umrddt_stage_recv(const mca_coll_umrddt_stage_t *stage);

const mca_coll_umrddt_vectors_t *mca_coll_umrddt_stage_vectors(const mca_coll_umrddt_stage_t *stage,
                                                               int side);

/** Copy the input data into the stage, and wait. @return as mca_coll_umrddt_stage_new */
int mca_coll_umrddt_stage_in(mca_coll_umrddt_stage_t *stage);

/**
 * Start to copy the results to the device. @return OMPI_SUCCESS, or an error, with no copy in
 * progress
 */
int mca_coll_umrddt_stage_out(mca_coll_umrddt_stage_t *stage);

/**
 * Test these copies. @return OMPI_SUCCESS; OMPI_ERR_RESOURCE_BUSY: in progress; or an error, with
 * no copy in progress
 */
int mca_coll_umrddt_stage_test(mca_coll_umrddt_stage_t *stage);

/** Free a stage with no copy in progress. NULL is allowed. */
void mca_coll_umrddt_stage_free(mca_coll_umrddt_stage_t *stage);

/**
 * End of a blocking collective: copy the results and wait, if the saved function succeeded. Frees
 * the stage.
 *
 * @param[in] rc  return value of the saved function
 *
 * @return rc, or the error of the copy
 */
int mca_coll_umrddt_stage_end(mca_coll_umrddt_stage_t *stage, int rc);

void mca_coll_umrddt_stages_open(void);

/** Free the pool of stages; the last call. */
void mca_coll_umrddt_stages_close(void);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_STAGE_H */
