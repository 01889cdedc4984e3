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
 * The functions of a module: the three forms of each collective, from a description of its
 * buffers and of its messages. See coll_umrddt.h first.
 */

#ifndef MCA_COLL_UMRDDT_FORMS_H
#define MCA_COLL_UMRDDT_FORMS_H

#include "coll_umrddt_agree.h"
#include "coll_umrddt_direct.h"
#include "coll_umrddt_messages.h"
#include "coll_umrddt_request.h"
#include "coll_umrddt_stage.h"

BEGIN_C_DECLS

/** Pass a list as one macro argument. */
#define MCA_COLL_UMRDDT_LIST(...) __VA_ARGS__

/** Call a function or macro with arguments that contain MCA_COLL_UMRDDT_LIST. */
#define MCA_COLL_UMRDDT_APPLY(function, ...) function(__VA_ARGS__)

/**
 * GPU memory of nonblocking and persistent collectives is never passed through to an Open MPI with
 * CUDA. They progress in later calls, possibly with another current context. Also, MPI_Ialltoall of
 * coll/libnbc in 5.0.7 sends other bytes (external32) if a buffer is in GPU memory. All processes
 * would have to decide alike.
 *
 * Defines the three forms of a collective with the buffers @a sbuf and @a rbuf (only @a rbuf for
 * one buffer). Requires these functions or macros:
 *
 * - name_sides(sides, comm, PARAMETERS) describes the buffers
 * - name_counts(comm, PARAMETERS) is true if the call counts for agreements (coll_umrddt_agree.h).
 *   It may use the variable module
 * - name_direct(module, comm, sides, all, PARAMETERS) does the call if the agreement @a all allows
 * - name_shape(comm, PARAMETERS): the messages of the nonblocking and the persistent form, or
 *   MCA_COLL_UMRDDT_NO_SHAPE; the same in all processes
 * - name_root(PARAMETERS): for these forms
 * - name_always(comm, PARAMETERS) is true if the blocking form has such messages, too, without an
 *   agreement; name_direct then gets 0 as @a all
 *
 * @param name        as in the module
 * @param parameters  the common parameters of the three forms, in parentheses
 * @param given       the same as arguments
 * @param staged      the same, with the local variables sstage and rstage for the buffers
 */
#define MCA_COLL_UMRDDT_DEFINE(name, parameters, given, staged)                                   \
    int mca_coll_umrddt_##name(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm,        \
                               mca_coll_base_module_t *base)                                      \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        MCA_COLL_UMRDDT_ALWAYS(name, given)                                                       \
        const bool due = MCA_COLL_UMRDDT_APPLY(name##_counts, comm, MCA_COLL_UMRDDT_LIST given)   \
                         && mca_coll_umrddt_due(module, MCA_COLL_UMRDDT_KIND_##name);             \
        mca_coll_umrddt_stage_t *stage = NULL;                                                    \
        int rc;                                                                                   \
                                                                                                  \
        if (due || mca_coll_umrddt_looks(module, comm)) {                                         \
            mca_coll_umrddt_sides_t sides;                                                        \
            unsigned all = 0;                                                                     \
                                                                                                  \
            sides.handled = false;                                                                \
            sides.reduction.op = NULL;                                                            \
            name##_sides(&sides, comm, MCA_COLL_UMRDDT_LIST given);                               \
            rc = OPAL_UNLIKELY(due) ? mca_coll_umrddt_agree_and_stage(                            \
                     module, comm, MCA_COLL_UMRDDT_KIND_##name, &sides, &stage, &all)             \
                                    : mca_coll_umrddt_stage_new(&sides, &stage);                  \
            if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {                                              \
                return rc;                                                                        \
            }                                                                                     \
            if (0 != all) {                                                                       \
                return MCA_COLL_UMRDDT_APPLY(name##_direct, module, comm, &sides, all,            \
                                             MCA_COLL_UMRDDT_LIST given);                         \
            }                                                                                     \
            if (OPAL_UNLIKELY(sides.gpu)) {                                                       \
                module->schedules[MCA_COLL_UMRDDT_KIND_##name].used = true;                       \
            }                                                                                     \
        } else {                                                                                  \
            MCA_COLL_UMRDDT_COUNT(passed);                                                        \
        }                                                                                         \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_##name(MCA_COLL_UMRDDT_LIST given, comm,                    \
                                             module->saved.coll_##name##_module);                 \
        }                                                                                         \
        rc = mca_coll_umrddt_stage_in(stage);                                                     \
        if (OMPI_SUCCESS == rc) {                                                                 \
            MCA_COLL_UMRDDT_STAGED                                                                \
            rc = module->saved.coll_##name(MCA_COLL_UMRDDT_LIST staged, comm,                     \
                                           module->saved.coll_##name##_module);                   \
        }                                                                                         \
        return mca_coll_umrddt_stage_end(stage, rc);                                              \
    }                                                                                             \
                                                                                                  \
    int mca_coll_umrddt_i##name(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm,       \
                                ompi_request_t **request, mca_coll_base_module_t *base)           \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        ompi_request_t *inner = NULL;                                                             \
        MCA_COLL_UMRDDT_MESSAGES(name, given, false)                                              \
        MCA_COLL_UMRDDT_PREPARE(name, given)                                                      \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_i##name(MCA_COLL_UMRDDT_LIST given, comm, request,          \
                                              module->saved.coll_i##name##_module);               \
        }                                                                                         \
        rc = mca_coll_umrddt_stage_in(stage);                                                     \
        if (OMPI_SUCCESS == rc) {                                                                 \
            MCA_COLL_UMRDDT_STAGED                                                                \
            rc = module->saved.coll_i##name(MCA_COLL_UMRDDT_LIST staged, comm, &inner,            \
                                            module->saved.coll_i##name##_module);                 \
        }                                                                                         \
        return mca_coll_umrddt_request_new(comm, stage, rc, inner, false, request);               \
    }                                                                                             \
                                                                                                  \
    int mca_coll_umrddt_##name##_init(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm, \
                                      struct ompi_info_t *info, ompi_request_t **request,         \
                                      mca_coll_base_module_t *base)                               \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        ompi_request_t *inner = NULL;                                                             \
        MCA_COLL_UMRDDT_MESSAGES(name, given, true)                                               \
        MCA_COLL_UMRDDT_PREPARE(name, given)                                                      \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_##name##_init(MCA_COLL_UMRDDT_LIST given, comm, info,       \
                                                    request,                                      \
                                                    module->saved.coll_##name##_init_module);     \
        }                                                                                         \
        MCA_COLL_UMRDDT_STAGED                                                                    \
        rc = module->saved.coll_##name##_init(MCA_COLL_UMRDDT_LIST staged, comm, info, &inner,    \
                                              module->saved.coll_##name##_init_module);           \
        return mca_coll_umrddt_request_new(comm, stage, rc, inner, true, request);                \
    }

/** Do a blocking call by messages, if all processes do without an agreement. */
#define MCA_COLL_UMRDDT_ALWAYS(name, given)                                             \
    if (MCA_COLL_UMRDDT_APPLY(name##_always, comm, MCA_COLL_UMRDDT_LIST given)          \
        && MCA_COLL_UMRDDT_NO_SHAPE                                                     \
               != MCA_COLL_UMRDDT_APPLY(name##_shape, comm, MCA_COLL_UMRDDT_LIST given) \
        && mca_coll_umrddt_agrees(module, comm)) {                                      \
        mca_coll_umrddt_sides_t always;                                                 \
                                                                                        \
        if (!mca_coll_umrddt_messages_room(&module->direct, comm)) {                    \
            return OMPI_ERR_OUT_OF_RESOURCE;                                            \
        }                                                                               \
        name##_sides(&always, comm, MCA_COLL_UMRDDT_LIST given);                        \
        return MCA_COLL_UMRDDT_APPLY(name##_direct, module, comm, &always, 0,           \
                                     MCA_COLL_UMRDDT_LIST given);                       \
    }

/** The same for the other forms. */
#define MCA_COLL_UMRDDT_MESSAGES(name, given, persistent)                                         \
    const mca_coll_umrddt_shape_t shape =                                                         \
        MCA_COLL_UMRDDT_APPLY(name##_shape, comm, MCA_COLL_UMRDDT_LIST given);                    \
                                                                                                  \
    if (MCA_COLL_UMRDDT_NO_SHAPE != shape                                                         \
        && mca_coll_umrddt_is_request(module, comm, persistent)) {                                \
        mca_coll_umrddt_sides_t moved;                                                            \
                                                                                                  \
        name##_sides(&moved, comm, MCA_COLL_UMRDDT_LIST given);                                   \
        return mca_coll_umrddt_direct_request(                                                    \
            module, comm, shape, &moved,                                                          \
            MCA_COLL_UMRDDT_APPLY(name##_root, MCA_COLL_UMRDDT_LIST given), persistent, request); \
    }

#define MCA_COLL_UMRDDT_PREPARE(name, given)                    \
    mca_coll_umrddt_stage_t *stage = NULL;                      \
    int rc;                                                     \
                                                                \
    if (mca_coll_umrddt_requests(module, comm)) {               \
        mca_coll_umrddt_sides_t sides;                          \
                                                                \
        sides.handled = true;                                   \
        name##_sides(&sides, comm, MCA_COLL_UMRDDT_LIST given); \
        rc = mca_coll_umrddt_stage_new(&sides, &stage);         \
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {                \
            return rc;                                          \
        }                                                       \
    } else {                                                    \
        MCA_COLL_UMRDDT_COUNT(passed);                          \
    }

#define MCA_COLL_UMRDDT_STAGED                              \
    const void *sstage = mca_coll_umrddt_stage_send(stage); \
    void *rstage = mca_coll_umrddt_stage_recv(stage);       \
                                                            \
    (void) sstage;

#define MCA_COLL_UMRDDT_VECTOR(side, name, given)           \
    (NULL != mca_coll_umrddt_stage_vectors(stage, side)     \
         ? mca_coll_umrddt_stage_vectors(stage, side)->name \
         : (given))

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_FORMS_H */
