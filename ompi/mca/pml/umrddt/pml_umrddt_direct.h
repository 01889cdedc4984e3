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
 * Messages without mkeys: the sender writes into the receiver's layout itself, which the receiver
 * sends it, flattened, and which the sender remembers.
 *
 * As with sets of keys (pml_umrddt_sets.h) the sender has numbered places, and the receiver alone
 * decides what is in them. It counts on a place only when the FIN of the message that filled it has
 * come, and changes it only when no message that names it is under way. Other than a set of keys, a
 * layout may be named by several messages at once. A place brings back a layout, never a key: each
 * CTS names the memory that its message may be written to.
 *
 * All of it is of progress only.
 */

#ifndef MCA_PML_UMRDDT_DIRECT_H
#define MCA_PML_UMRDDT_DIRECT_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * The choice (pml_umrddt_choice.c)
 * ------------------------------------------------------------------------------------------- */

/** Layouts and buffers that were received into: whether a message is the first of its kind. */
typedef struct mca_pml_umrddt_seen_t mca_pml_umrddt_seen_t;

/** An empty table, or NULL without memory. free() it. */
mca_pml_umrddt_seen_t *mca_pml_umrddt_seen_new(void);

/**
 * The way of a message that came with this envelope, for a receiver that may want to go direct.
 *
 * Where both ways are open, a message whose layout and buffer were not seen lately goes direct if
 * that is cheap (pml_umrddt_direct_writes, pml_umrddt_direct_run): keys that nobody used again
 * would have been mapped in vain. All others go by keys, which are mapped by the second message and
 * kept for the next.
 *
 * @return MCA_PML_UMRDDT_BIT_UMR or _BY_DIRECT; 0: none
 */
unsigned mca_pml_umrddt_choose(const mca_pml_umrddt_rts_t *rts,
                               const opal_iov_cache_layout_t *layout, const void *buffer,
                               uint64_t total);

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** How a layout is named to a sender. */
typedef enum mca_pml_umrddt_flat_naming_t {
    MCA_PML_UMRDDT_FLAT_SEND,  /**< send it; it is not to be remembered */
    MCA_PML_UMRDDT_FLAT_STORE, /**< send it, to be put into the place */
    MCA_PML_UMRDDT_FLAT_PLACE  /**< the sender has it in the place */
} mca_pml_umrddt_flat_naming_t;

/**
 * How to name a layout to a peer. Except for FLAT_SEND the place is in use until
 * mca_pml_umrddt_flat_leave.
 *
 * @param[in]  places  how many the sender has for us (from its RTS)
 * @param[in]  keep    it may be remembered
 * @param[out] place   which; not with FLAT_SEND
 */
mca_pml_umrddt_flat_naming_t mca_pml_umrddt_flat_name(mca_pml_umrddt_peer_t *peer, uint32_t places,
                                                      uint64_t layout, bool keep, uint32_t *place);

/** True if mca_pml_umrddt_flat_name would say FLAT_PLACE. */
bool mca_pml_umrddt_flat_there(const mca_pml_umrddt_peer_t *peer, uint32_t places, uint64_t layout);

/** The message is over; @p well if its FIN has come, so the sender has the layout. */
void mca_pml_umrddt_flat_leave(mca_pml_umrddt_peer_t *peer, uint32_t place, bool well);

/**
 * Sends one message of a CTS.
 *
 * @return OMPI_SUCCESS or an error, which ends the CTS
 */
typedef int (*mca_pml_umrddt_emit_fn_t)(void *context, const void *bytes, size_t length);

/**
 * Send the parts of a flattened layout, until the rest has room behind another message.
 *
 * @param[in]  head     what each begins with: all but offset
 * @param[in]  flat     head->flat_bytes of it
 * @param[in]  rest     bytes that there is room for behind the other message
 * @param[in]  room     bytes of a part with its header
 * @param[in]  scratch  as many
 * @param[out] sent     bytes that were sent; the caller sends the others
 */
int mca_pml_umrddt_flat_emit(const mca_pml_umrddt_flat_t *head, const void *flat, size_t rest,
                             size_t room, void *scratch, mca_pml_umrddt_emit_fn_t emit,
                             void *context, uint32_t *sent);

/**
 * Send a CTS and, before it, as many parts of the flattened layout as it takes.
 *
 * @param[in] cts      all but the regions; flat_bytes 0: the sender has the layout
 * @param[in] regions  cts->region_count of them
 * @param[in] flat     cts->flat_bytes of it
 * @param[in] scratch  MCA_PML_UMRDDT_REPLY_ROOM bytes
 */
int mca_pml_umrddt_direct_emit(const mca_pml_umrddt_direct_t *cts, const mca_btl_umr_key_t *regions,
                               const void *flat, void *scratch, mca_pml_umrddt_emit_fn_t emit,
                               void *context);

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

/** A flattened layout of which parts have come. */
typedef struct mca_pml_umrddt_parts_t {
    uint64_t layout;
    uint32_t flat_bytes;
    uint32_t have;
    unsigned char bytes[];
} mca_pml_umrddt_parts_t;

/**
 * A part has come.
 *
 * @param[in]     flat    checked for magic, seq and slot only
 * @param[in]     length  bytes of it
 * @param[in]     most    bytes that a layout may have, flattened
 * @param[in,out] parts   what has come before, or NULL; free() it in the end
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM        a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_direct_part(const mca_pml_umrddt_flat_t *flat, size_t length, size_t most,
                               mca_pml_umrddt_parts_t **parts);

/**
 * The layout of which all parts have come.
 *
 * @param[in]  bytes   of the flattened layout in all
 * @param[in]  tail    the last of them
 * @param[in]  length  of these
 * @param[in]  parts   those before, or NULL; they are bytes - length
 * @param[out] layout  the caller owns a reference
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_BAD_PARAM        it is none
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_flat_layout(uint32_t bytes, const unsigned char *tail, size_t length,
                               const mca_pml_umrddt_parts_t *parts,
                               opal_iov_cache_layout_t **layout);

/**
 * A CTS has come: check it field by field, find or read the layout, and remember it if asked to.
 *
 * @param[in]  peer     whose places these are
 * @param[in]  cts      checked for magic, seq and slot only
 * @param[in]  length   bytes of it
 * @param[in]  size     of the message; cts->total is at most that, and at most what the layout has
 * @param[in]  parts    that came before, or NULL
 * @param[out] regions  room for MCA_PML_UMRDDT_MAX_REGIONS; cts->region_count are written
 * @param[out] to       the receiver's layout; the caller owns a reference
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_NOT_FOUND        the layout is not in the place
 * @retval OMPI_ERR_BAD_PARAM        a field is wrong
 * @retval OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_direct_read(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_direct_t *cts,
                               size_t length, uint64_t size, const mca_pml_umrddt_parts_t *parts,
                               mca_btl_umr_key_t *regions, opal_iov_cache_layout_t **to);

/** Free what a peer has of both. */
void mca_pml_umrddt_flats_free(mca_pml_umrddt_peer_t *peer);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_DIRECT_H */
