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
 * Requests of nonblocking and persistent collectives.
 */

#ifndef MCA_COLL_UMRDDT_REQUEST_H
#define MCA_COLL_UMRDDT_REQUEST_H

#include "coll_umrddt_stage.h"

#include "ompi/mca/coll/base/coll_base_util.h"

BEGIN_C_DECLS

/** Request of a staged or direct call. */
typedef struct mca_coll_umrddt_request_t {
    ompi_coll_base_nbc_request_t super; /**< Open MPI attaches datatypes to it */
    ompi_request_t *inner;              /**< the saved function's request, owned; or NULL */
    mca_coll_umrddt_stage_t *stage;
    struct mca_coll_umrddt_direct_t *direct; /**< messages of a direct call, owned; or NULL */
    ompi_communicator_t *retained; /**< until the messages of a nonblocking call have ended; or NULL
                                    */
    bool copying; /**< inner is complete, and the result is being copied to the device */
} mca_coll_umrddt_request_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_request_t);

/**
 * Create a request that completes when the saved function's has and the result is in the user's
 * buffer.
 *
 * @param[in]  comm
 * @param[in]  stage       owned by the request; freed on error
 * @param[in]  rc          return value of the saved function
 * @param[in]  inner       the saved function's request; owned by the new request
 * @param[in]  persistent  inner is persistent and not started
 * @param[out] request
 *
 * @return rc if that is an error, else OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_coll_umrddt_request_new(ompi_communicator_t *comm, mca_coll_umrddt_stage_t *stage, int rc,
                                ompi_request_t *inner, bool persistent, ompi_request_t **request);

/**
 * Create a request that completes when all messages of a list have. It starts them, unless it is
 * persistent. @param[in] direct  owned by the request; freed on error
 */
int mca_coll_umrddt_request_messages(ompi_communicator_t *comm,
                                     struct mca_coll_umrddt_direct_t *direct, bool persistent,
                                     ompi_request_t **request);

void mca_coll_umrddt_requests_open(void);
void mca_coll_umrddt_requests_close(void);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_REQUEST_H */
