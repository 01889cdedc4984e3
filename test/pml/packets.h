/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* What test_direct and test_ipc have in common: layouts, what was emitted of them, and a malloc
 * that fails. */

#ifndef TEST_PML_PACKETS_H
#define TEST_PML_PACKETS_H

#include <string.h>

#include "../common/check.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

/* At most so many for one message. */
#define PARTS 300

/* The malloc of the component under test that fails, as a count from now; -1: none. */
static int no_memory = -1;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return 0 <= no_memory && 0 == no_memory-- ? NULL : __real_malloc(size);
}

/* What was emitted for one message: the parts of a layout, and what names it. */
typedef struct packets_t {
    int count;
    int fails_at; /* this one is not sent; -1: all are */
    size_t length[PARTS];
    void *bytes[PARTS];
} packets_t;

static packets_t *packets_to; /* of the message that is sent */

int mca_pml_umrddt_control(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *bytes,
                           size_t length, bool critical)
{
    packets_t *packets = packets_to;

    (void) comm, (void) peer, (void) tag, (void) critical;
    CHECK(packets->count < PARTS);
    CHECK(PACKET_ROOM >= length);
    if (packets->count == packets->fails_at) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    packets->bytes[packets->count] = __real_malloc(length);
    memcpy(packets->bytes[packets->count], bytes, length);
    packets->length[packets->count++] = length;
    return OMPI_SUCCESS;
}

static void packets_free(packets_t *packets)
{
    for (int i = 0; i < packets->count; ++i) {
        free(packets->bytes[i]);
    }
    packets->count = 0;
}

/* A packet, as it was. */
typedef struct packet_t {
    void *bytes;
    size_t length;
} packet_t;

/* Another length for packet i, with zeros behind what it had. @return for packet_restore */
static packet_t packet_resize(packets_t *packets, int i, size_t length)
{
    packet_t was = {packets->bytes[i], packets->length[i]};

    packets->bytes[i] = __real_malloc(0 < length ? length : 1);
    packets->length[i] = length;
    memset(packets->bytes[i], 0, length);
    memcpy(packets->bytes[i], was.bytes, length < was.length ? length : was.length);
    return was;
}

static void packet_restore(packets_t *packets, int i, packet_t was)
{
    free(packets->bytes[i]);
    packets->bytes[i] = was.bytes;
    packets->length[i] = was.length;
}

/* A layout of pieces without any order, so that its flattened form is as long as can be. */
static opal_iov_cache_layout_t *layout_new(size_t pieces, unsigned *seed)
{
    opal_iov_cache_iov_t *iovs = calloc(pieces, sizeof(*iovs));
    opal_iov_cache_layout_t *layout = NULL;
    opal_iov_cache_form_t *form = NULL;
    int64_t offset = -1000;

    for (size_t i = 0; i < pieces; ++i) {
        offset += 1 + rand_r(seed) % 5000;
        iovs[i].offset = offset;
        iovs[i].length = 1 + (uint64_t) rand_r(seed) % 300;
        offset += (int64_t) iovs[i].length;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(iovs, pieces, &form));
    CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
    free(iovs);
    return layout;
}

#endif /* TEST_PML_PACKETS_H */
