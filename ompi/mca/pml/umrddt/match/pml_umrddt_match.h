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
 * The functions that replace those of mca_pml: the MPI entry points. And of one-sided
 * communication.
 */

#ifndef MCA_PML_UMRDDT_MATCH_H
#define MCA_PML_UMRDDT_MATCH_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/message/message.h"
#include "ompi/request/request.h"

#include "ompi/mca/pml/pml.h"

BEGIN_C_DECLS

/* What MPI calls of sends and of receives begin with. */
#define MCA_PML_UMRDDT_SEND_PARAMETERS                                          \
    const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, \
        mca_pml_base_send_mode_t mode, ompi_communicator_t *comm
#define MCA_PML_UMRDDT_SEND_ARGUMENTS buf, count, datatype, dst, tag, mode, comm
#define MCA_PML_UMRDDT_RECV_PARAMETERS \
    void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm
#define MCA_PML_UMRDDT_RECV_ARGUMENTS buf, count, datatype, src, tag, comm

/* pml_umrddt_send.c */
int mca_pml_umrddt_isend_init(MCA_PML_UMRDDT_SEND_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_isend(MCA_PML_UMRDDT_SEND_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_send(MCA_PML_UMRDDT_SEND_PARAMETERS);
int mca_pml_umrddt_start(size_t count, ompi_request_t **requests);

/* pml_umrddt_recv.c */
int mca_pml_umrddt_irecv_init(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_irecv(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_request_t **request);
int mca_pml_umrddt_recv(MCA_PML_UMRDDT_RECV_PARAMETERS, ompi_status_public_t *status);

/* pml_umrddt_probe.c */
int mca_pml_umrddt_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                          ompi_status_public_t *status);
int mca_pml_umrddt_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_umrddt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                           ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_umrddt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status);
int mca_pml_umrddt_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                          ompi_message_t **message, ompi_request_t **request);
int mca_pml_umrddt_mrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                         ompi_message_t **message, ompi_status_public_t *status);

/* pml_umrddt_windows.c: called between open and close of the osc framework. Both are idempotent. */
void mca_pml_umrddt_windows_open(void);
void mca_pml_umrddt_windows_close(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_MATCH_H */
