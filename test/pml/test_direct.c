/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * What travels for messages without mkeys: receivers and senders of random layouts on few places,
 * where any message may fail and the sender may be out of memory; then the same headers with every
 * byte wrong in turn, with wrong lengths, and with numbers that make no sense. What is accepted
 * must be what was sent, and everything else is refused.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

#define PACKET_ROOM MCA_PML_UMRDDT_REPLY_ROOM
#include "packets.h"

enum {
    LAYOUTS = 9,
    FLIGHTS = 6
};

static opal_iov_cache_layout_t *layouts[LAYOUTS];
static mca_pml_umrddt_peer_t receiver, sender;

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

/* The CTS of a layout, by a receiver that has decided how to name it. */
static mca_pml_umrddt_cts_sgl_t cts_of(const opal_iov_cache_layout_t *layout, uint64_t seq,
                                       size_t regions)
{
    return (mca_pml_umrddt_cts_sgl_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_SGL),
        .seq = seq,
        .request_id = (uint32_t) seq,
        .fin = (uint32_t) seq + 7,
        .total = layout->size - seq % 2,
        .buffer = 4096 * seq,
        .layout = layout->id,
        .address = {1, 2},
        .slot = MCA_PML_UMRDDT_NO_SLOT,
        .region_count = (uint32_t) regions,
    };
}

static void regions_of(mca_btl_umr_key_t *regions, size_t count, uint64_t seq)
{
    for (size_t i = 0; i < count; ++i) {
        regions[i] = (mca_btl_umr_key_t){
            .addr = seq * 100000 + 1000 * i, .length = 1 + i, .rkey = (uint32_t) (seq + i)};
    }
}

static uint32_t flat_bytes_of(const opal_iov_cache_layout_t *layout)
{
    return (uint32_t) opal_iov_cache_form_flatten(layout->form, NULL, 0);
}

/* Send a CTS with these regions, and the layout if it has flat_bytes. */
static int send_cts(const mca_pml_umrddt_cts_sgl_t *cts, const mca_btl_umr_key_t *regions,
                    const opal_iov_cache_layout_t *layout, packets_t *packets)
{
    static uint64_t room[MCA_PML_UMRDDT_REPLY_ROOM / 8];
    mca_pml_umrddt_cts_sgl_t *message = (mca_pml_umrddt_cts_sgl_t *) room;
    const mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = cts->seq,
        .request_id = cts->request_id,
        .flat_bytes = cts->flat_bytes,
        .layout = cts->layout};

    *message = *cts;
    for (size_t i = 0; i < cts->region_count; ++i) {
        message->regions[i] = (mca_pml_umrddt_region_t){
            .addr = regions[i].addr, .length = regions[i].length, .rkey = regions[i].rkey};
    }
    packets_to = packets;
    return mca_pml_umrddt_flat_send(NULL, 0, 0, message,
                                    sizeof(*cts) + cts->region_count * sizeof(cts->regions[0]),
                                    &part, layout->form, MCA_PML_UMRDDT_REPLY_ROOM);
}

/* What the sender does with what came. @return what direct_part or direct_read said */
static int take(const packets_t *packets, uint64_t size, mca_btl_umr_key_t *regions,
                opal_iov_cache_layout_t **to)
{
    mca_pml_umrddt_parts_t *parts = NULL;
    int rc = OMPI_SUCCESS;

    for (int i = 0; OMPI_SUCCESS == rc && i + 1 < packets->count; ++i) {
        rc = mca_pml_umrddt_direct_part(packets->bytes[i], packets->length[i],
                                        MCA_PML_UMRDDT_MAX_FLAT, &parts);
    }
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_direct_read(&sender, packets->bytes[packets->count - 1],
                                        packets->length[packets->count - 1], size, parts, regions,
                                        to);
    }
    free(parts);
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Exchanges
 * ------------------------------------------------------------------------------------------- */

/* A pending message. */
typedef struct flight_t {
    int layout; /* -1: none */
    bool placed;
    uint32_t slot;
    bool well;
} flight_t;

static void begin(flight_t *flight, uint64_t seq, unsigned *seed, unsigned long counts[3])
{
    size_t region_count = 0 == rand_r(seed) % 4 ? 1 + (size_t) rand_r(seed) % 128 : 1;
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS], got[MCA_PML_UMRDDT_MAX_REGIONS];
    opal_iov_cache_layout_t *to = NULL, *layout;
    mca_pml_umrddt_naming_t naming;
    packets_t packets = {.fails_at = 0 == rand_r(seed) % 20 ? rand_r(seed) % 3 : -1};
    mca_pml_umrddt_cts_sgl_t cts;
    uint32_t bytes;
    bool there;
    int rc;

    flight->layout = rand_r(seed) % LAYOUTS;
    layout = layouts[flight->layout];
    cts = cts_of(layout, seq, region_count);
    regions_of(regions, region_count, seq);
    bytes = flat_bytes_of(layout);
    there = mca_pml_umrddt_slot_there(&receiver.flats_there, mca_pml_umrddt.params.direct_layouts,
                                      layout->id);
    naming =
        MCA_PML_UMRDDT_CACHED_FLAT < bytes
            ? MCA_PML_UMRDDT_NAME_SEND
            : mca_pml_umrddt_slot_name(&receiver.flats_there, mca_pml_umrddt.params.direct_layouts,
                                       layout->id, true, &cts.slot);
    CHECK(there == (MCA_PML_UMRDDT_NAME_SLOT == naming));
    ++counts[naming];
    flight->placed = MCA_PML_UMRDDT_NAME_SEND != naming;
    flight->slot = cts.slot;
    CHECK(!flight->placed || cts.slot < mca_pml_umrddt.params.direct_layouts);
    CHECK(MCA_PML_UMRDDT_CACHED_FLAT >= bytes || !flight->placed);
    cts.flat_bytes = MCA_PML_UMRDDT_NAME_SLOT == naming ? 0 : bytes;
    rc = send_cts(&cts, regions, layout, &packets);
    CHECK(OMPI_SUCCESS == rc || packets.count == packets.fails_at);
    flight->well = OMPI_SUCCESS == rc;
    if (flight->well) {
        no_memory = 0 == rand_r(seed) % 15 ? rand_r(seed) % 3 : -1;
        there = -1 == no_memory;
        rc = take(&packets, layout->size, got, &to);
        no_memory = -1;
        CHECK(OMPI_SUCCESS == rc || !there);
        CHECK(OMPI_SUCCESS == rc || OMPI_ERR_OUT_OF_RESOURCE == rc);
        flight->well = OMPI_SUCCESS == rc && 0 != rand_r(seed) % 10;
    }
    if (NULL != to) {
        CHECK(opal_iov_cache_form_equal(layout->form, to->form));
        for (size_t i = 0; i < region_count; ++i) {
            CHECK(regions[i].addr == got[i].addr && regions[i].length == got[i].length
                  && regions[i].rkey == got[i].rkey && 0 == got[i].lkey);
        }
        OBJ_RELEASE(to);
    }
    packets_free(&packets);
}

static void end(flight_t *flight)
{
    if (flight->placed) {
        mca_pml_umrddt_slot_end(&receiver.flats_there, flight->slot, flight->well);
    }
    flight->layout = -1;
}

static void exchanges(unsigned seed, unsigned slots)
{
    flight_t flights[FLIGHTS];
    unsigned long counts[3] = {0, 0, 0};

    mca_pml_umrddt.params.direct_layouts = slots;
    memset(&receiver, 0, sizeof(receiver));
    memset(&sender, 0, sizeof(sender));
    for (int i = 0; i < FLIGHTS; ++i) {
        flights[i].layout = -1;
    }
    for (uint64_t seq = 1; seq < 1500; ++seq) {
        flight_t *flight = &flights[rand_r(&seed) % FLIGHTS];

        if (-1 != flight->layout) {
            end(flight);
        } else {
            begin(flight, seq, &seed, counts);
        }
    }
    for (int i = 0; i < FLIGHTS; ++i) {
        if (-1 != flights[i].layout) {
            end(&flights[i]);
        }
    }
    CHECK(0 < counts[MCA_PML_UMRDDT_NAME_SEND]);
    CHECK((0 < slots) == (0 < counts[MCA_PML_UMRDDT_NAME_STORE]));
    CHECK((0 < slots) == (0 < counts[MCA_PML_UMRDDT_NAME_SLOT]));
    CHECK((0 < slots) == (0 < mca_pml_umrddt.counters.direct_bytes_now));
    mca_pml_umrddt_flats_free(&sender);
    mca_pml_umrddt_flats_free(&receiver);
    CHECK(0 == mca_pml_umrddt.counters.direct_bytes_now);
}

/* ---------------------------------------------------------------------------------------------
 * Garbled
 * ------------------------------------------------------------------------------------------- */

/* Whatever the CTS holds: an error, or a layout that is sound and long enough. */
static int garbled(const packets_t *packets, uint64_t size)
{
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS];
    const mca_pml_umrddt_cts_sgl_t *cts = packets->bytes[packets->count - 1];
    opal_iov_cache_layout_t *to = NULL;
    int rc = take(packets, size, regions, &to);

    if (OMPI_SUCCESS == rc) {
        CHECK(NULL != to && NULL == opal_iov_cache_form_check(to->form));
        CHECK(cts->total <= size && cts->total <= to->size);
        OBJ_RELEASE(to);
    } else {
        CHECK(NULL == to);
        CHECK(OMPI_ERR_BAD_PARAM == rc || OMPI_ERR_NOT_FOUND == rc);
    }
    return rc;
}

/* Every byte of every packet gets some other values, and every packet is cut and lengthened. */
static void garble(int which, size_t region_count, bool placed, unsigned seed)
{
    const opal_iov_cache_layout_t *layout = layouts[which];
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS];
    mca_pml_umrddt_cts_sgl_t cts = cts_of(layout, 2, region_count);
    packets_t packets = {.fails_at = -1};
    size_t step;

    memset(&sender, 0, sizeof(sender));
    mca_pml_umrddt.params.direct_layouts = 4;
    cts.flat_bytes = flat_bytes_of(layout);
    cts.slot = placed ? 3 : MCA_PML_UMRDDT_NO_SLOT;
    regions_of(regions, region_count, 2);
    CHECK(OMPI_SUCCESS == send_cts(&cts, regions, layout, &packets));
    CHECK(OMPI_SUCCESS == garbled(&packets, layout->size));

    for (int i = 0; i < packets.count; ++i) {
        unsigned char *bytes = packets.bytes[i];

        /* all of a header, and some of what follows */
        for (size_t k = 0; k < packets.length[i]; k += step) {
            unsigned char was = bytes[k];

            step = k < 200 ? 1 : 1 + (size_t) rand_r(&seed) % 97;
            for (int bit = 0; bit < 8; ++bit) {
                bytes[k] = (unsigned char) (was ^ 1 << bit);
                (void) garbled(&packets, layout->size);
            }
            bytes[k] = (unsigned char) rand_r(&seed);
            (void) garbled(&packets, layout->size);
            bytes[k] = was;
        }
        /* shorter and longer than its length field */
        for (int change = -2; change <= 2; ++change) {
            packet_t was =
                packet_resize(&packets, i, packets.length[i] + (size_t) (int64_t) change);

            CHECK((0 == change ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM)
                  == garbled(&packets, layout->size));
            packet_restore(&packets, i, was);
        }
    }
    packets_free(&packets);
    mca_pml_umrddt_flats_free(&sender);
}

/* A cached layout that is too short for the message that names it stays cached. */
static void too_short(void)
{
    const uint64_t size = layouts[0]->size;
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS], got[MCA_PML_UMRDDT_MAX_REGIONS];
    mca_pml_umrddt_cts_sgl_t cts = cts_of(layouts[0], 2, 1);
    opal_iov_cache_layout_t *to = NULL;
    uint64_t now;

    mca_pml_umrddt.params.direct_layouts = 4;
    memset(&sender, 0, sizeof(sender));
    regions_of(regions, 1, 2);
    for (int round = 0; round < 3; ++round) {
        packets_t packets = {.fails_at = -1};

        cts.slot = 1;
        cts.total = size + (1 == round ? 1 : 0);
        cts.flat_bytes = 0 == round ? flat_bytes_of(layouts[0]) : 0;
        CHECK(OMPI_SUCCESS == send_cts(&cts, regions, layouts[0], &packets));
        CHECK((1 == round ? OMPI_ERR_BAD_PARAM : OMPI_SUCCESS)
              == take(&packets, size + 1, got, &to));
        CHECK((1 == round) == (NULL == to));
        if (NULL != to) {
            CHECK(size == to->size);
            OBJ_RELEASE(to);
            to = NULL;
        }
        packets_free(&packets);
    }
    now = 0;
    CHECK(NULL == mca_pml_umrddt_flats_check(&sender, &now) && 0 < now);
    mca_pml_umrddt_flats_free(&sender);
    CHECK(0 == mca_pml_umrddt.counters.direct_bytes_now);
}

/* One field with a number that makes no sense. */
static void fields(void)
{
    const opal_iov_cache_layout_t *layout = layouts[0];
    mca_btl_umr_key_t regions[MCA_PML_UMRDDT_MAX_REGIONS];
    mca_pml_umrddt_cts_sgl_t cts = cts_of(layout, 2, 2), *made;
    packets_t packets = {.fails_at = -1};

    memset(&sender, 0, sizeof(sender));
    mca_pml_umrddt.params.direct_layouts = 4;
    cts.flat_bytes = flat_bytes_of(layout);
    regions_of(regions, 2, 2);
    CHECK(OMPI_SUCCESS == send_cts(&cts, regions, layout, &packets));
    CHECK(1 == packets.count);
    made = packets.bytes[0];

#define WRONG(code, ...)                                  \
    do {                                                  \
        mca_pml_umrddt_cts_sgl_t was = *made;             \
        mca_pml_umrddt_region_t first = made->regions[0]; \
        __VA_ARGS__;                                      \
        CHECK((code) == garbled(&packets, layout->size)); \
        *made = was;                                      \
        made->regions[0] = first;                         \
    } while (0)

    WRONG(OMPI_SUCCESS, (void) 0);
    WRONG(OMPI_SUCCESS, made->total = 1);
    WRONG(OMPI_ERR_BAD_PARAM, made->total = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->total = layout->size + 1);
    WRONG(OMPI_ERR_BAD_PARAM, made->total = UINT64_MAX);
    WRONG(OMPI_ERR_BAD_PARAM, made->layout = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = 2);
    WRONG(OMPI_ERR_BAD_PARAM, made->slot = 4);
    WRONG(OMPI_ERR_BAD_PARAM, made->slot = UINT32_MAX - 1);
    WRONG(OMPI_ERR_BAD_PARAM, made->region_count = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->region_count = 1);
    WRONG(OMPI_ERR_BAD_PARAM, made->region_count = 3);
    WRONG(OMPI_ERR_BAD_PARAM, made->region_count = UINT32_MAX);
    WRONG(OMPI_ERR_BAD_PARAM, made->region_count = 1u << 31);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = 0; made->slot = 1);
    WRONG(OMPI_ERR_BAD_PARAM, --made->flat_bytes);
    WRONG(OMPI_ERR_BAD_PARAM, ++made->flat_bytes);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = UINT32_MAX);
    WRONG(OMPI_ERR_BAD_PARAM, made->regions[0].length = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->regions[0].reserved = 1);

    /* A message that is longer than the layout, though not than what was sent. */
    made->total = layout->size + 1;
    CHECK(OMPI_ERR_BAD_PARAM == garbled(&packets, UINT64_MAX));
    made->total = layout->size;

    /* A layout that was never here; then one that is; then another id. */
    packets.length[0] = sizeof(*made) + 2 * sizeof(made->regions[0]);
    WRONG(OMPI_ERR_NOT_FOUND, made->flat_bytes = 0; made->slot = 1);
    packets.length[0] += made->flat_bytes;
    WRONG(OMPI_SUCCESS, made->slot = 1);
    packets.length[0] -= made->flat_bytes;
    WRONG(OMPI_SUCCESS, made->flat_bytes = 0; made->slot = 1);
    WRONG(OMPI_ERR_NOT_FOUND, made->flat_bytes = 0; made->slot = 2);
    WRONG(OMPI_ERR_NOT_FOUND, made->flat_bytes = 0; made->slot = 1; ++made->layout);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = 0; made->slot = 1; made->total = layout->size + 1);

    packets_free(&packets);
    mca_pml_umrddt_flats_free(&sender);
}

/* Parts that do not continue each other. */
static void parts(void)
{
    struct {
        mca_pml_umrddt_layout_frag_t head;
        unsigned char bytes[100];
    } part = {.head = {.flat_bytes = 250, .layout = 5}};
    mca_pml_umrddt_parts_t *have = NULL;
    const size_t length = sizeof(part.head) + 100;

    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, sizeof(part.head), MCA_PML_UMRDDT_MAX_FLAT,
                                        &have));
    part.head.offset = 1;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.offset = 0;
    part.head.flat_bytes = 99;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.flat_bytes = MCA_PML_UMRDDT_MAX_FLAT + 1;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.flat_bytes = 0;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.flat_bytes = 250;
    part.head.layout = 0;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    CHECK(NULL == have);
    part.head.layout = 5;
    no_memory = 0;
    CHECK(OMPI_ERR_OUT_OF_RESOURCE
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    CHECK(NULL == have);
    CHECK(OMPI_SUCCESS
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT,
                                        &have)); /* again */
    part.head.offset = 100;
    part.head.layout = 6;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.layout = 5;
    part.head.flat_bytes = 251;
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.flat_bytes = 50; /* fewer than have come */
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.flat_bytes = 250;
    CHECK(OMPI_SUCCESS
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    part.head.offset = 200; /* only 50 more are expected */
    CHECK(OMPI_ERR_BAD_PARAM
          == mca_pml_umrddt_direct_part(&part.head, length, MCA_PML_UMRDDT_MAX_FLAT, &have));
    CHECK(200 == have->have);
    free(have);
}

/* ---------------------------------------------------------------------------------------------
 * The choice
 * ------------------------------------------------------------------------------------------- */

/* Of umr and direct, as the receiver tries them. */
static bool permits(void *message, mca_pml_umrddt_scheme_id_t scheme)
{
    mca_pml_umrddt_recv_t *recv = message;

    return MCA_PML_UMRDDT_SCHEME_UMR != scheme
           || 0 == (MCA_PML_UMRDDT_BIT_DIRECT & recv->candidates)
           || !mca_pml_umrddt_rule_direct(recv);
}

static unsigned choose(const mca_pml_umrddt_rts_t *rts, const opal_iov_cache_layout_t *layout,
                       char *buffer, uint64_t total)
{
    mca_pml_umrddt_recv_t recv = {.rts = *rts, .buf = buffer, .total = total};
    mca_pml_umrddt_scheme_id_t scheme;

    recv.layout = (opal_iov_cache_layout_t *) layout;
    recv.candidates = rts->schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_HCA;
    scheme = opal_umrddt_select_next(&recv.candidates, 0, permits, &recv);
    return MCA_PML_UMRDDT_SCHEME_BASE == scheme ? 0 : MCA_PML_UMRDDT_BIT(scheme);
}

static void choice(void)
{
    const opal_iov_cache_layout_t *few = layouts[1], *many = layouts[2];
    mca_pml_umrddt_rts_t rts = {
        .pieces = 10, .write_pieces = 5, .schemes = MCA_PML_UMRDDT_BITS_ALL};
    const unsigned umr = MCA_PML_UMRDDT_BIT_UMR, direct = MCA_PML_UMRDDT_BIT_DIRECT;
    static char buffer[8];

    mca_pml_umrddt.params.mkey_cache = true;
    mca_pml_umrddt.params.direct_writes = (unsigned) few->iov_count + 2;
    mca_pml_umrddt.params.direct_run = 0;
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
    mca_pml_umrddt.received = opal_umrddt_received_new();
    CHECK(direct == choose(&rts, few, buffer, few->size));
    CHECK(umr == choose(&rts, few, buffer, few->size));
    CHECK(umr == choose(&rts, few, buffer, few->size));
    CHECK(direct == choose(&rts, few, buffer + 1, few->size));
    CHECK(umr == choose(&rts, many, buffer, many->size));
    rts.pieces = 15; /* one write more than is allowed */
    CHECK(umr == choose(&rts, few, buffer + 2, few->size));
    mca_pml_umrddt.params.direct_run = few->size / 15 + 1;
    CHECK(umr == choose(&rts, few, buffer + 3, few->size));
    mca_pml_umrddt.params.direct_run = few->size / 15;
    CHECK(direct == choose(&rts, few, buffer + 4, few->size));
    mca_pml_umrddt.params.mkey_cache = false;
    CHECK(umr == choose(&rts, few, buffer + 5, few->size));
    mca_pml_umrddt.params.mkey_cache = true;
    for (unsigned mine = 1; mine <= MCA_PML_UMRDDT_BITS_ALL; ++mine) {
        mca_pml_umrddt.schemes = (uint16_t) mine;
        for (rts.schemes = 1; rts.schemes <= MCA_PML_UMRDDT_BITS_ALL; ++rts.schemes) {
            unsigned common = mine & rts.schemes & MCA_PML_UMRDDT_BITS_HCA;

            if (MCA_PML_UMRDDT_BITS_HCA != common) {
                CHECK(common == choose(&rts, few, buffer + 6, few->size));
                CHECK(common == choose(&rts, many, buffer + 6, many->size));
            }
        }
    }
    free(mca_pml_umrddt.received);
    mca_pml_umrddt.received = NULL;
}

/** Packed: what both sides can and may, where a GPU is at one end or nothing else is offered. */
static void packed(void)
{
    const unsigned staged = MCA_PML_UMRDDT_BIT_PACK_STAGED, host = MCA_PML_UMRDDT_BIT_PACK_HOST;
    const unsigned gdr = MCA_PML_UMRDDT_BIT_PACK_GDR;
    opal_umrddt_gpu_where_t cpu = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}};
    opal_umrddt_gpu_where_t gpu = {.memory = {.kind = OPAL_UMRDDT_GPU_DEVICE}};
    opal_umrddt_gpu_where_t both = {.memory = {.kind = OPAL_UMRDDT_GPU_DEVICE}, .mixed = true};
    mca_pml_umrddt_rts_t rts = {.schemes = MCA_PML_UMRDDT_BITS_ALL};

    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
    mca_pml_umrddt.params.pack_host = 1000;
    CHECK(host == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 999));
    CHECK(gdr == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1000));
    CHECK(0 == mca_pml_umrddt_rule_pack(rts.schemes, &both, 1000));
    rts.schemes |= MCA_PML_UMRDDT_IF_GPU;
    CHECK(gdr == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1000));
    CHECK(0 == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 1000));
    rts.schemes = MCA_PML_UMRDDT_BITS_PACK | MCA_PML_UMRDDT_IF_GPU; /* and nothing beside it */
    CHECK(0 == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 1000));
    rts.schemes = MCA_PML_UMRDDT_BITS_ALL | MCA_PML_UMRDDT_ON_GPU;
    CHECK(gdr == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 1000));
    rts.schemes &= (uint16_t) ~gdr;
    CHECK(host == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 999));
    CHECK(staged == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 1000));
    rts.schemes = (uint16_t) gdr;
    CHECK(gdr == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1));
    rts.schemes = host; /* the sender's user wants nothing else */
    CHECK(host == mca_pml_umrddt_rule_pack(rts.schemes, &cpu, 1000));
    mca_pml_umrddt.schemes = (uint16_t) staged;
    CHECK(0 == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1000));
    rts.schemes = MCA_PML_UMRDDT_BITS_ALL;
    CHECK(staged == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1));
    rts.schemes = MCA_PML_UMRDDT_BITS_HCA;
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
    CHECK(0 == mca_pml_umrddt_rule_pack(rts.schemes, &gpu, 1000));
}

/* A violated invariant of a peer is reported by its name. */
static void invariants(void)
{
    mca_pml_umrddt_peer_t peer;
    uint64_t bytes = 0;
    uint32_t slot;

    memset(&peer, 0, sizeof(peer));
    CHECK(NULL == mca_pml_umrddt_flats_check(&peer, &bytes));
    (void) mca_pml_umrddt_slot_name(&peer.flats_there, 4, 17, true, &slot);
    CHECK(NULL == mca_pml_umrddt_flats_check(&peer, &bytes) && 0 == bytes);
    CHECK(0 < peer.flats_there.clock);
    peer.flats_there.clock = 0;
    CHECK(NULL != mca_pml_umrddt_flats_check(&peer, &bytes)
          && 0 == strncmp("layouts of receivers", mca_pml_umrddt_flats_check(&peer, &bytes), 20));
    mca_pml_umrddt_flats_free(&peer);
}

int main(void)
{
    static const size_t pieces[LAYOUTS] = {3, 12, 60, 1, 700, 2000, 9000, 40, 45000};
    unsigned seed = 4711;

    for (int i = 0; i < LAYOUTS; ++i) {
        layouts[i] = layout_new(pieces[i], &seed);
    }
    /* one is too long for the cache, and none for a message */
    CHECK(MCA_PML_UMRDDT_CACHED_FLAT
          < opal_iov_cache_form_flatten(layouts[LAYOUTS - 1]->form, NULL, 0));
    CHECK(MCA_PML_UMRDDT_MAX_FLAT
          >= opal_iov_cache_form_flatten(layouts[LAYOUTS - 1]->form, NULL, 0));
    for (unsigned slots = 0; slots < 5; ++slots) {
        exchanges(100 + slots, slots);
    }
    for (int i = 0; i < 5; ++i) {
        garble(i, 1 + (size_t) i * 31, 0 == i % 2, (unsigned) i);
    }
    invariants();
    too_short();
    fields();
    parts();
    choice();
    packed();
    for (int i = 0; i < LAYOUTS; ++i) {
        OBJ_RELEASE(layouts[i]);
    }
    printf("%lu checks\n", checks);
    return 0;
}
