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
 * Messages without mkeys (scheme direct, sgl in the manual): the sender writes into the receiver's
 * layout. The receiver sends the flattened layout, and the sender caches it.
 *
 * As for rkey sets (pml_umrddt_sets.h), the sender's cache has numbered slots whose content the
 * receiver chooses. A slot holds a layout but no rkey: each CTS names the memory that its message
 * may be written to.
 *
 * All functions run only in progress.
 */

#ifndef MCA_PML_UMRDDT_DIRECT_H
#define MCA_PML_UMRDDT_DIRECT_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/**
 * Send a CTS or an INFO message, and its layout if there is one: as many parts of the flattened
 * layout as needed, then the message with the rest.
 *
 * @param[in] last    the message, of @p length bytes
 * @param[in] head    fields that all parts share: all but offset. flat_bytes 0: without a layout
 * @param[in] form    of the layout
 * @param[in] room    size of the receive at the other side, bytes
 *
 * @return OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, or the base PML's error
 */
int mca_pml_umrddt_flat_send(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *last,
                             size_t length, const mca_pml_umrddt_layout_frag_t *head,
                             const opal_iov_cache_form_t *form, size_t room);

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** A flattened layout of which some parts have arrived. */
typedef struct mca_pml_umrddt_parts_t {
    uint64_t layout;
    uint32_t flat_bytes;
    uint32_t have;
    unsigned char bytes[];
} mca_pml_umrddt_parts_t;

/**
 * Store a part that has arrived.
 *
 * @param[in]     flat    the part; only magic, seq and slot are checked
 * @param[in]     length  its size, bytes
 * @param[in]     most    maximum size of a flattened layout, bytes
 * @param[in,out] parts   the parts so far, or NULL; the caller frees it with free()
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_direct_part(const mca_pml_umrddt_layout_frag_t *flat, size_t length, size_t most,
                               mca_pml_umrddt_parts_t **parts);

/**
 * Build a layout whose parts have all arrived.
 *
 * @param[in]  id      its number at the other side
 * @param[in]  bytes   size of the whole flattened layout
 * @param[in]  tail    the last part
 * @param[in]  length  its size, bytes
 * @param[in]  parts   earlier parts, or NULL
 * @param[out] layout  the caller owns a reference
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM not a valid layout, or the parts are not those of this layout
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_flat_layout(uint64_t id, uint32_t bytes, const unsigned char *tail,
                               size_t length, const mca_pml_umrddt_parts_t *parts,
                               opal_iov_cache_layout_t **layout);

/**
 * Validate a CTS that has arrived, get its layout, and cache the layout if requested.
 *
 * @param[in]  peer     whose layouts these are
 * @param[in]  cts      only magic, seq and slot are checked
 * @param[in]  length   its size, bytes
 * @param[in]  size     of the message; the upper limit of cts->total, like the size of the layout
 * @param[in]  parts    parts that arrived before, or NULL
 * @param[out] regions  room for MCA_PML_UMRDDT_MAX_REGIONS; cts->region_count are written
 * @param[out] to       the receiver's layout; the caller owns a reference
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_NOT_FOUND the slot does not hold the layout
 * @retval OMPI_ERR_BAD_PARAM a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_direct_read(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_cts_sgl_t *cts,
                               size_t length, uint64_t size, const mca_pml_umrddt_parts_t *parts,
                               mca_btl_umr_key_t *regions, opal_iov_cache_layout_t **to);

/** Free the layout cache of a peer and our record of its cache. */
void mca_pml_umrddt_flats_free(mca_pml_umrddt_peer_t *peer);

/** Check the cached layouts of a peer: member of the group of RDMA schemes. */
const char *mca_pml_umrddt_flats_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_DIRECT_H */
