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
 * Registration, start and end of the component.
 */

#ifndef MCA_PML_UMRDDT_BRINGUP_H
#define MCA_PML_UMRDDT_BRINGUP_H

#include "ompi_config.h"

#include <stdbool.h>

#include "opal/mca/base/mca_base_var.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

BEGIN_C_DECLS

/* pml_umrddt_params.c, _pvars.c */

/** Register the parameters (pml_umrddt_params.h) and check their values. */
void mca_pml_umrddt_params_register(void);

/** Get the scheme with this name of pml_umrddt_scheme. @return -1 if there is none */
int mca_pml_umrddt_scheme_named(const char *name);
void mca_pml_umrddt_pvars_register(void);

/** Number of the values that mca_pml_umrddt_pvars_read returns, the same in all processes. */
size_t mca_pml_umrddt_pvars_count(void);

/** Read the performance variables of this process. @param[out] values  room for all */
void mca_pml_umrddt_pvars_read(uint64_t *values);

/** Get the name of a value, by its index. Values of one HCA have its index in brackets. */
void mca_pml_umrddt_pvars_name(size_t i, char *name, size_t size);

/** Print the performance variables of a process. */
void mca_pml_umrddt_pvars_print(const opal_process_name_t *name, const uint64_t *values);

/* pml_umrddt_stats.c */

/** Statistics printed in MPI_Finalize. */
typedef enum mca_pml_umrddt_stats_t {
    MCA_PML_UMRDDT_STATS_NONE = 0,
    MCA_PML_UMRDDT_STATS_JOB = 1, /**< a summary of the job, by rank 0 */
    MCA_PML_UMRDDT_STATS_ALL = 2, /**< and all counters of each process */
    MCA_PML_UMRDDT_STATS_JSON = 3 /**< all counters of the job, in a file */
} mca_pml_umrddt_stats_t;

/** Print what pml_umrddt_stats requests, which is not "none". Every process of the job calls it;
 * the wait for the others is bounded. */
void mca_pml_umrddt_stats_print(void);

/* pml_umrddt_gather.c */

/** Called with the data of a process. @param[in] rank  in MPI_COMM_WORLD */
typedef void (*mca_pml_umrddt_gathered_t)(uint32_t rank, const void *data, void *context);

/**
 * Collect data of all processes of the job at rank 0. Every process calls it, in finalize. It waits
 * for the others for 5 seconds at most.
 *
 * @param[in]  mine  data of this process
 * @param[in]  size  of the data, the same in all processes, bytes
 * @param[in]  each  called for this process, and at rank 0 for the others that have joined in time
 * @param[out] job   number of processes of the job
 *
 * @return number of calls of @p each
 */
uint32_t mca_pml_umrddt_gather(void *mine, size_t size, mca_pml_umrddt_gathered_t each,
                               void *context, uint32_t *job);

/* pml_umrddt_base.c: opens the base PML */

/** Open every candidate PML and add it to the selection. @return OMPI_SUCCESS or an error */
int mca_pml_umrddt_base_open(void);

/** Returns true if the selection of the pml framework names umrddt. */
bool mca_pml_umrddt_requested(void);

/* pml_umrddt_comms.c */

/** Allocate the records that add_comm uses when memory is short. @return OMPI_SUCCESS or
 * OMPI_ERR_OUT_OF_RESOURCE */
int mca_pml_umrddt_comms_init(void);
void mca_pml_umrddt_comms_fini(void);

int mca_pml_umrddt_add_comm(struct ompi_communicator_t *comm);
int mca_pml_umrddt_del_comm(struct ompi_communicator_t *comm);

/**
 * Drain before MPI_COMM_WORLD or the base PML ends. All messages to other processes have been
 * received by then. But the HCA may not have reported the completion of sends whose requests were
 * freed, and the base PML may still refuse replies to peers. Wait for both, then drop the remaining
 * replies on @p comm (NULL: all).
 */
void mca_pml_umrddt_drain_on_finalize(mca_pml_umrddt_comm_t *comm);

/** Free all peers and the communicators that are left. */
void mca_pml_umrddt_peers_free(void);

/* pml_umrddt_schemes.c */

/** Open all groups, and set mca_pml_umrddt.schemes and any_system. */
void mca_pml_umrddt_schemes_open(void);

/** Close all groups; before the HCA and the GPUs are closed. */
void mca_pml_umrddt_schemes_close(void);

/** No communicator with this peer is left. Any thread. */
void mca_pml_umrddt_schemes_peer_forget(const mca_pml_umrddt_peer_t *peer);

/** Free what the schemes hold for a peer. */
void mca_pml_umrddt_schemes_peer_free(mca_pml_umrddt_peer_t *peer);

/* pml_umrddt_interpose.c */
void mca_pml_umrddt_interpose(void);
int mca_pml_umrddt_finalize(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_BRINGUP_H */
