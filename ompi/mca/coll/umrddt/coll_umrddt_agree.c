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
 * Agreements of all processes of a communicator. See coll_umrddt_agree.h first.
 */

/*
 * Each process knows only its own buffers. Before data can go from GPU to GPU, all must know that
 * all buffers are there. A small allreduce of the saved functions tells them. All processes must
 * make it at the same calls, whatever memory they use. So each counts the blocking calls of one
 * kind on the communicator. Calls with few bytes are not counted, if MPI requires the same number
 * of bytes in all processes. Agreements are at call 1, 2, 4, 8, and so on, at last every PERIOD
 * calls. If one process has used GPU memory since the last agreement, all agree at each call, until
 * no process has.
 *
 * Requirement: all processes have this module, with the same parameters. They publish that in the
 * modex, by pml/umrddt, which also carries the messages. Each process finds the same result.
 */

#include "ompi_config.h"

#include "opal/class/opal_hash_table.h"
#include "opal/util/proc.h"

#include "coll_umrddt_agree.h"
#include "coll_umrddt_messages.h"
#include "coll_umrddt_reduce.h"

#include "umrddt_collectives.h"

#define PERIOD 1024u /* maximum number of calls from an agreement to the next */
#define PROCESSES                                                                  \
    4096 /* maximum of a communicator with agreements: each reads the modex of all \
          */

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_hash_table_t modes; /**< by process: the mode that it has published */

void mca_coll_umrddt_agree_open(void)
{
    OBJ_CONSTRUCT(&modes, opal_hash_table_t);
    (void) opal_hash_table_init(&modes, 64);
}

void mca_coll_umrddt_agree_close(void)
{
    OBJ_DESTRUCT(&modes);
}

/** The mode that a process has published: read from the modex once, not for each communicator. */
static uint16_t mode_of(opal_proc_t *proc)
{
    const uint64_t name = (uint64_t) proc->proc_name.jobid << 32 | proc->proc_name.vpid;
    void *known = NULL;
    int rc;

    opal_mutex_lock(&lock);
    rc = opal_hash_table_get_value_uint64(&modes, name, &known);
    opal_mutex_unlock(&lock);
    if (OPAL_SUCCESS != rc) {
        MCA_COLL_UMRDDT_COUNT(modes_read);
        known = (void *) (uintptr_t) opal_umrddt_collectives.mode_of(proc);
        opal_mutex_lock(&lock);
        (void) opal_hash_table_set_value_uint64(&modes, name, known);
        opal_mutex_unlock(&lock);
    }
    return (uint16_t) (uintptr_t) known;
}

/** Returns true if all processes of a group but rank @p self are in the mode of this process. */
static bool group_agrees(ompi_group_t *group, int self)
{
    for (int i = 0; i < ompi_group_size(group); ++i) {
        ompi_proc_t *proc = i == self ? NULL : ompi_group_peer_lookup(group, i);

        if (i != self && (NULL == proc || opal_umrddt_collectives.mode != mode_of(&proc->super))) {
            return false;
        }
    }
    return true;
}

/** Returns true if all processes can agree. The same result in all of them. */
static bool can_agree(const mca_coll_umrddt_module_t *module, ompi_communicator_t *comm)
{
    const opal_umrddt_collectives_t *published = &opal_umrddt_collectives;
    const bool inter = OMPI_COMM_IS_INTER(comm);
    const int size = ompi_comm_size(comm);

    if (PROCESSES < size || NULL == module->saved.coll_allreduce || 0 == published->mode
        || NULL == published->mode_of) {
        return false;
    }
    return group_agrees(comm->c_local_group, ompi_comm_rank(comm))
           && (!inter
               || (PROCESSES >= size + ompi_comm_remote_size(comm)
                   && group_agrees(comm->c_remote_group, -1)));
}

bool mca_coll_umrddt_agrees(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm)
{
    if (MCA_COLL_UMRDDT_UNKNOWN == module->agrees) {
        module->agrees =
            can_agree(module, comm) ? MCA_COLL_UMRDDT_AGREES : MCA_COLL_UMRDDT_DISAGREES;
    }
    return MCA_COLL_UMRDDT_AGREES == module->agrees;
}

/** The saved allreduce of what processes state. In an intercommunicator, it gives each group the
 * statements of the other one. A second one gives these back. */
static int all_state(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm, unsigned mine,
                     unsigned *all)
{
    unsigned theirs;
    int rc;

    MCA_COLL_UMRDDT_COUNT(agreements);
    rc = module->saved.coll_allreduce(&mine, all, 1, MPI_UNSIGNED, MPI_BAND, comm,
                                      module->saved.coll_allreduce_module);
    if (OMPI_SUCCESS == rc && OMPI_COMM_IS_INTER(comm)) {
        theirs = *all;
        rc = module->saved.coll_allreduce(&theirs, all, 1, MPI_UNSIGNED, MPI_BAND, comm,
                                          module->saved.coll_allreduce_module);
        *all &= theirs;
    }
    return rc;
}

int mca_coll_umrddt_agree(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                          mca_coll_umrddt_kind_t kind, unsigned mine, unsigned *all)
{
    mca_coll_umrddt_schedule_t *schedule = &module->schedules[kind];
    int rc = OMPI_SUCCESS;

    *all = 0;
    if (!mca_coll_umrddt_agrees(module, comm)) {
        schedule->left = UINT32_MAX;
        return OMPI_SUCCESS;
    }
    if (!schedule->used && 0 != (MCA_COLL_UMRDDT_NO_GPU & mine)) {
        mine |= MCA_COLL_UMRDDT_UNUSED;
    }
    if (1 < ompi_comm_size(comm) || OMPI_COMM_IS_INTER(comm)) {
        rc = all_state(module, comm, mine, all);
    } else {
        *all = mine;
    }
    schedule->used = false;
    if (OMPI_SUCCESS != rc || 0 == (MCA_COLL_UMRDDT_UNUSED & *all)) {
        schedule->period = schedule->left = 1;
        return rc;
    }
    schedule->left = schedule->period;
    if (PERIOD > schedule->period) {
        schedule->period *= 2;
    }
    return OMPI_SUCCESS;
}

/**
 * Returns true if a side has data, and not in GPU memory. The receive buffer of the first process
 * of an exscan has none: it is neither read nor written.
 */
static bool is_elsewhere(const mca_coll_umrddt_side_t *side, mca_coll_umrddt_look_t seen)
{
    for (int i = 0; MCA_COLL_UMRDDT_CPU == seen && i < side->parts; ++i) {
        if (0 != side->flow && !mca_coll_umrddt_side_is_empty(side, i)) {
            return true;
        }
    }
    return false;
}

int mca_coll_umrddt_agree_and_stage(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                    mca_coll_umrddt_kind_t kind, mca_coll_umrddt_sides_t *sides,
                                    mca_coll_umrddt_stage_t **stage, unsigned *all)
{
    mca_coll_umrddt_look_t seen[2] = {MCA_COLL_UMRDDT_CPU, MCA_COLL_UMRDDT_CPU};
    unsigned mine = 0;
    bool direct;
    int rc;

    *stage = NULL;
    *all = 0;
    sides->gpu = false;
    sides->reduction.work = NULL;
    if (mca_coll_umrddt_looks(module, comm)) {
        rc = mca_coll_umrddt_stage_look(sides, seen, stage);
        if (OMPI_SUCCESS != rc) {
            /* the other processes make this agreement, and must find no direct call */
            (void) mca_coll_umrddt_agree(module, comm, kind, 0, all);
            *all = 0;
            return rc;
        }
    }
    if (!sides->gpu) {
        mine |= MCA_COLL_UMRDDT_NO_GPU;
    } else if (NULL != sides->reduction.op && mca_coll_umrddt_agrees(module, comm)) {
        mine |= mca_coll_umrddt_reduce_states(comm, &sides->reduction);
    }
    if (!is_elsewhere(&sides->send, seen[0]) && !is_elsewhere(&sides->recv, seen[1])
        && (NULL != sides->reduction.op || mca_coll_umrddt_messages_room(&module->direct, comm))) {
        mine |= MCA_COLL_UMRDDT_ALL_GPU;
    }
    if (0 == sides->recv.parts || mca_coll_umrddt_side_is_contiguous(&sides->recv)) {
        mine |= MCA_COLL_UMRDDT_BYTES;
    }
    rc = mca_coll_umrddt_agree(module, comm, kind, mine, all);
    direct = OMPI_SUCCESS == rc && mca_coll_umrddt_is_direct(*all)
             && (NULL == sides->reduction.op || 0 != (MCA_COLL_UMRDDT_REDUCES & *all));
    if (!direct) {
        mca_coll_umrddt_reduce_release(&sides->reduction);
        *all = 0;
    }
    if (OMPI_SUCCESS != rc || direct) {
        mca_coll_umrddt_stage_free(*stage);
        *stage = NULL;
        return rc;
    }
    return mca_coll_umrddt_stage_fill(sides, seen, stage);
}
