/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Our side sends, and the input is the receiver: replies of every kind, correct except where the
 * input corrupts them, in any order, in any state; keys that become ready, writes that complete or
 * fail, a base PML that refuses. No write ever uses a key that no reply contained. GPU memory is
 * described only to a process that was offered it, once, and no other allocation is. At the end,
 * when the receiver has sent ACK for the rest, or has set its completion flags, all messages are
 * complete and no resource is held.
 */

#include "world.h"

#include <unistd.h>

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

/* Messages at once. */
#define MESSAGES 4

typedef struct message_t {
    ompi_request_t *request; /* NULL: none */
    bool loose;              /* freed by its user before it was over */
    bool described;          /* what the memory is */
    bool replied;            /* its completion flag was set */
    mca_pml_umrddt_rts_t rts;
    uint32_t type;
    unsigned char *buf;
} message_t;

static message_t messages[MESSAGES];
static mca_pml_umrddt_rts_t last_rts;
static uint64_t next_set = 1;

/* A TELL of ours: about a message that offered its memory, and about nothing else. */
static void check_report(uint32_t request_id, const mca_pml_umrddt_info_t *info, size_t length)
{
    static const opal_umrddt_gpu_export_t none;
    const opal_umrddt_gpu_export_t *said = &info->export;
    message_t *message = messages;

    while (MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO) != info->magic
           || (NULL == message->request && !message->loose) || info->seq != message->rts.seq) {
        FUZZ_CHECK(&messages[MESSAGES] > ++message);
    }
    FUZZ_CHECK(0 != (MCA_PML_UMRDDT_BIT_IPC & message->rts.schemes) && !message->described
               && request_id == message->rts.request_id && request_id == info->request_id
               && message->rts.layout == info->layout && 0 == info->reserved
               && 0 == (~MCA_PML_UMRDDT_INFO_ALL & info->what)
               && sizeof(*info) + info->flat_bytes == length);
    message->described = true;
    FUZZ_CHECK((0 != (MCA_PML_UMRDDT_INFO_LAYOUT & info->what)) == (0 < info->flat_bytes)
               && (0 == info->done_flag_pid || (uint32_t) getpid() == info->done_flag_pid));
    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & info->what)) {
        FUZZ_CHECK(message->rts.buffer_id == said->buffer_id
                   && message->rts.buffer == (uintptr_t) message->buf && WORLD_ROOM == said->size
                   && message->rts.buffer == said->base);
    } else {
        FUZZ_CHECK(0 == memcmp(said, &none, sizeof(none)));
    }
}

static void sent(int tag, const void *bytes, size_t length)
{
    uint32_t request_id;
    int kind;

    if (0 <= tag && sizeof(last_rts) == length) {
        memcpy(&last_rts, bytes, length);
    } else if (world_tag(tag, &kind, &request_id) && MCA_PML_UMRDDT_TAG_INFO == kind) {
        check_report(request_id, bytes, length);
    }
}

/* ---- completion flags ---- */

/* The receiver can write what it likes there, into the completion flag of any message. */
static void ring(fuzz_bytes_t *input)
{
    const mca_pml_umrddt_rts_t *rts = &messages[fuzz_below(input, MESSAGES)].rts;
    uint8_t how = fuzz_byte(input);
    uint64_t seq = rts->seq + (0 != (how & 4) ? fuzz_number(input, 2) : 0);
    uint32_t request_id = 0 != (how & 8) ? fuzz_below(input, 8) : rts->request_id;

    if (NULL != opal_umrddt_own_done_flags && OPAL_UMRDDT_DONE_FLAGS > request_id) {
        opal_umrddt_done_flag_set(opal_umrddt_own_done_flags, request_id, seq,
                                  (opal_umrddt_done_flag_state_t) (how & 3));
    }
}

/* Who waits there is over, or listens elsewhere, only behind this. */
static void hear(void)
{
    for (uint32_t i = 0; i < MESSAGES; ++i) {
        const mca_pml_umrddt_rts_t *rts = &messages[i].rts;

        if (NULL != opal_umrddt_own_done_flags && OPAL_UMRDDT_DONE_FLAGS > rts->request_id) {
            uint64_t word = opal_umrddt_own_done_flags->done_flags[rts->request_id].word;

            messages[i].replied = messages[i].replied
                                  || (rts->seq << 2 | OPAL_UMRDDT_DONE_FLAG_DONE) == word
                                  || (rts->seq << 2 | OPAL_UMRDDT_DONE_FLAG_REPLY) == word;
        }
    }
}

/* To those that wait there, that the receiver has them. */
static void ring_all(void)
{
    for (uint32_t i = 0; i < MESSAGES; ++i) {
        if ((NULL != messages[i].request || messages[i].loose)
            && 0 != (MCA_PML_UMRDDT_DONE_FLAG & messages[i].rts.schemes)) {
            FUZZ_CHECK(NULL != opal_umrddt_own_done_flags
                       && OPAL_UMRDDT_DONE_FLAGS > messages[i].rts.request_id);
            opal_umrddt_done_flag_set(opal_umrddt_own_done_flags, messages[i].rts.request_id,
                                      messages[i].rts.seq, OPAL_UMRDDT_DONE_FLAG_DONE);
        }
    }
}

/* ---- messages ---- */

static void start(fuzz_bytes_t *input)
{
    message_t *message = &messages[fuzz_below(input, MESSAGES)];
    uint32_t type = fuzz_below(input, WORLD_TYPES);
    unsigned char *buf;

    if (NULL != message->request || message->loose) {
        return;
    }
    memset(&last_rts, 0, sizeof(last_rts));
    buf = world_buffer(fuzz_byte(input));
    if (OMPI_SUCCESS
        != mca_pml_umrddt_isend(buf, 1 + fuzz_below(input, 2), world_types[type], 1, 5,
                                MCA_PML_BASE_SEND_STANDARD, MPI_COMM_WORLD, &message->request)) {
        message->request = NULL; /* the base PML was set to refuse it */
    }
    message->buf = buf;
    message->described = message->replied = false;
    message->rts = last_rts;
    message->type = type;
    hear(); /* it may have been, by who has guessed its number */
}

/* ---- replies ---- */

/* Bytes of a packet, as they are put together. */
static union {
    unsigned char bytes[8192];
    mca_pml_umrddt_reply_t reply;
    mca_pml_umrddt_cts_cached_t cached_cts;
    mca_pml_umrddt_cts_sgl_t direct;
    mca_pml_umrddt_layout_frag_t flat;
} packet;

/* A CTS_PACK, of packet.reply with the fields that all kinds of reply share; by the base PML, or by
 * the HCA into chunk buffers of ours; or a CREDIT after one. */
static size_t make_pack(fuzz_bytes_t *input, uint8_t how)
{
    mca_pml_umrddt_reply_t *reply = &packet.reply;

    reply->what = how & 1 ? MCA_PML_UMRDDT_BIT_PACK_STAGED : MCA_PML_UMRDDT_BIT_PACK_HOST;
    reply->what = how & 2 ? MCA_PML_UMRDDT_BIT_PACK_GDR : reply->what;
    reply->chunk = 1024 + fuzz_below(input, 256) * 64;
    reply->chunk = reply->chunk < reply->total ? reply->chunk : reply->total;
    if (how & 8) {
        reply->reply_kind = MCA_PML_UMRDDT_REPLY_CREDIT;
        reply->start = 1 + fuzz_below(input, 32);
    } else if (0 != (how & 4) && 0 < reply->chunk) {
        reply->key_count = 1 + fuzz_below(input, 4);
        reply->start = fuzz_below(input, reply->key_count + 1);
        reply->fin = 9;
        reply->address = world_address(fuzz_below(input, 4));
        for (uint32_t i = 0; i < reply->key_count; ++i) {
            reply->keys[i] = (mca_pml_umrddt_wire_key_t){
                .addr = 1 << 20, .length = (uint32_t) reply->chunk, .rkey = 0x6000 + i};
        }
    }
    return sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]);
}

static size_t make_reply(fuzz_bytes_t *input, const mca_pml_umrddt_rts_t *rts, uint32_t reply_kind)
{
    mca_pml_umrddt_reply_t *reply = &packet.reply;
    uint32_t keys = 1 + fuzz_below(input, 8);
    uint64_t start = fuzz_below(input, 4) * (rts->length / 4), left;

    *reply = (mca_pml_umrddt_reply_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .reply_kind = reply_kind,
        .total = rts->length,
        .chunk = 4096,
        .what = fuzz_byte(input) & 3,
    };
    if (MCA_PML_UMRDDT_REPLY_CTS_PACK == reply_kind) {
        return make_pack(input, fuzz_byte(input));
    }
    if (MCA_PML_UMRDDT_REPLY_CTS != reply_kind) {
        return sizeof(*reply);
    }
    reply->start = start;
    reply->end = start + (rts->length - start) / (1 + fuzz_below(input, 3));
    reply->fin = 9;
    reply->key_count = keys;
    reply->address = world_address(fuzz_below(input, 4));
    reply->set = fuzz_byte(input) & 1 ? ++next_set : 0;
    reply->slot = fuzz_below(input, 4);
    left = reply->end - reply->start;
    for (uint32_t i = 0; i < keys; ++i) {
        uint64_t length = i + 1 == keys ? left : left / 2;

        reply->keys[i] =
            (mca_pml_umrddt_wire_key_t){.addr = 0, .length = (uint32_t) length, .rkey = 0x4000 + i};
        left -= length;
    }
    return sizeof(*reply) + keys * sizeof(reply->keys[0]);
}

static size_t make_lookup(fuzz_bytes_t *input, const mca_pml_umrddt_rts_t *rts)
{
    packet.cached_cts = (mca_pml_umrddt_cts_cached_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_CACHED),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .fin = 9,
        .set = next_set - fuzz_below(input, 2),
        .total = rts->length,
        .chunk = 4096,
        .slot = fuzz_below(input, 4),
    };
    return sizeof(packet.cached_cts);
}

static size_t make_direct(fuzz_bytes_t *input, const mca_pml_umrddt_rts_t *rts)
{
    uint32_t regions = 1 + fuzz_below(input, 3);
    unsigned char flat[4096];
    size_t length = world_flat(input, flat, sizeof(flat)), head, rest;

    packet.direct = (mca_pml_umrddt_cts_sgl_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_CTS_SGL),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .fin = 9,
        .total = rts->length,
        .buffer = 1 << 20,
        .layout = 1 + fuzz_below(input, 3),
        .address = world_address(fuzz_below(input, 4)),
        .slot = fuzz_byte(input) & 1 ? fuzz_below(input, 4) : MCA_PML_UMRDDT_NO_SLOT,
        .flat_bytes = (uint32_t) length,
        .region_count = regions,
    };
    for (uint32_t i = 0; i < regions; ++i) {
        packet.direct.regions[i] = (mca_pml_umrddt_region_t){
            .addr = (1 << 20) + i * 100000, .length = 99999, .rkey = 0x5000 + i};
    }
    if (0 == fuzz_below(input, 4)) {
        packet.direct.flat_bytes = 0; /* it is in the place */
        length = 0;
    }
    head = sizeof(packet.direct) + regions * sizeof(packet.direct.regions[0]);
    /* the end of it, if parts came before */
    rest = 0 == fuzz_below(input, 4) ? length / 2 : length;
    memcpy(packet.bytes + head, flat + (length - rest), rest);
    return head + rest;
}

static size_t make_part(fuzz_bytes_t *input, const mca_pml_umrddt_rts_t *rts)
{
    unsigned char flat[4096];
    size_t length = world_flat(input, flat, sizeof(flat)), part = length - length / 2;

    packet.flat = (mca_pml_umrddt_layout_frag_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .flat_bytes = (uint32_t) length,
        .layout = 1 + fuzz_below(input, 3),
    };
    memcpy(packet.flat.bytes, flat, part);
    return sizeof(packet.flat) + part;
}

/* What keys a packet names, if it is one that names any: those may be written to. */
static void note_keys(size_t length)
{
    if (sizeof(packet.reply) <= length) {
        for (uint32_t i = 0;
             i < packet.reply.key_count
             && sizeof(packet.reply) + (i + 1) * sizeof(packet.reply.keys[0]) <= length;
             ++i) {
            world_named(packet.reply.keys[i].rkey);
        }
    }
    if (sizeof(packet.direct) <= length) {
        for (uint32_t i = 0;
             i < packet.direct.region_count
             && sizeof(packet.direct) + (i + 1) * sizeof(packet.direct.regions[0]) <= length;
             ++i) {
            world_named(packet.direct.regions[i].rkey);
        }
    }
}

/* The message with a request id, or the last one that had it; NULL: none */
static const mca_pml_umrddt_rts_t *of_request_id(const world_request_t *listen)
{
    const mca_pml_umrddt_rts_t *found = NULL;
    int kind;
    uint32_t request_id;

    (void) world_tag(listen->tag, &kind, &request_id);
    for (uint32_t i = 0; i < MESSAGES; ++i) {
        if ((NULL != messages[i].request || messages[i].loose)
            && request_id == messages[i].rts.request_id
            && (NULL == found || found->seq < messages[i].rts.seq)) {
            found = &messages[i].rts;
        }
    }
    return found;
}

/* The message that a reply is for; which may be of an earlier time, and another one's. */
static const mca_pml_umrddt_rts_t *about(fuzz_bytes_t *input, const world_request_t *listen)
{
    const mca_pml_umrddt_rts_t *rts = of_request_id(listen);

    return NULL != rts ? rts : &messages[fuzz_below(input, MESSAGES)].rts;
}

static void reply(fuzz_bytes_t *input)
{
    world_request_t *listen = world_posted(MCA_PML_UMRDDT_TAG_REPLY, fuzz_byte(input));
    uint32_t kind = fuzz_below(input, 12);
    mca_pml_umrddt_rts_t rts;
    const uint8_t *bytes;
    size_t length;

    if (NULL == listen) {
        return;
    }
    memset(&packet, 0, sizeof(packet));
    rts = *about(input, listen);
    rts.seq += fuzz_byte(input) & 1 ? fuzz_below(input, 5) : 0; /* of a stripe */
    switch (kind) {
    case 0:
        length = fuzz_take(input, 200, &bytes);
        memcpy(packet.bytes, bytes, length);
        break;
    case 1:
        length = make_lookup(input, &rts);
        break;
    case 2:
        length = make_part(input, &rts);
        break;
    case 3:
    case 4:
        length = make_direct(input, &rts);
        break;
    case 5:
        length = make_reply(input, &rts, MCA_PML_UMRDDT_REPLY_FALLBACK);
        break;
    case 6:
        length = make_reply(input, &rts, MCA_PML_UMRDDT_REPLY_ACK);
        break;
    case 7:
        length = make_reply(input, &rts, MCA_PML_UMRDDT_REPLY_INFO_REQ);
        break;
    case 8:
        length = make_reply(input, &rts, MCA_PML_UMRDDT_REPLY_CTS_PACK);
        break;
    default:
        length = make_reply(input, &rts, MCA_PML_UMRDDT_REPLY_CTS);
        break;
    }
    fuzz_patch(input, packet.bytes, length);
    if (0 == fuzz_below(input, 8)) {
        length = fuzz_below(input, 8192);
    }
    note_keys(length);
    world_deliver(listen, listen->tag, packet.bytes, length);
}

/* ---- the rest ---- */

/* The user frees a request, over or not. */
static void let_go(message_t *message)
{
    /* (not an error of the base PML itself) */
    if (NULL != message->request
        && OBJ_CLASS(world_request_t) != ((opal_object_t *) message->request)->obj_class) {
        message->loose = !REQUEST_COMPLETE(message->request);
        ompi_request_free(&message->request);
        message->request = NULL;
    }
}

static void step(fuzz_bytes_t *input)
{
    uint8_t which, how;

    switch (fuzz_below(input, world.gpu ? 12 : 8)) {
    case 0:
    case 1:
        start(input);
        break;
    case 2:
    case 3:
        reply(input);
        break;
    case 4:
        world_put_end(input);
        break;
    case 5:
        world_keyset_end(input);
        break;
    case 6:
        which = fuzz_byte(input);
        how = fuzz_byte(input);
        if (0x0c == (how & 0x0c)) {
            let_go(&messages[which % MESSAGES]);
        } else {
            (void) world_send_done(which, how & 1);
        }
        break;
    case 7:
        world_refuse(input, 4);
        break;
    case 8:
        ring(input);
        hear();
        break;
    case 9:
        world_copy_end(input);
        break;
    default:
        reply(input);
        break;
    }
    world_progress(false);
}

static bool all_over(void)
{
    bool over = true;

    for (uint32_t i = 0; i < MESSAGES; ++i) {
        if (NULL != messages[i].request && REQUEST_COMPLETE(messages[i].request)) {
            FUZZ_CHECK(0 == (MCA_PML_UMRDDT_DONE_FLAG & messages[i].rts.schemes)
                       || messages[i].replied);
            ompi_request_free(&messages[i].request);
            messages[i].request = NULL;
        }
        over = over && NULL == messages[i].request;
        messages[i].loose = messages[i].loose && 0 != mca_pml_umrddt.active;
    }
    return over && 0 == mca_pml_umrddt.active;
}

/* A receiver that sends only ACK, an HCA and a base PML that complete: the messages must end. One
 * that requested chunks of a byte first gets its writes byte by byte. */
static void drain(void)
{
    uint32_t writes = world.writes, last = 0;

    for (uint32_t round = 0; !all_over(); ++round) {
        world_request_t *listen = world_posted(MCA_PML_UMRDDT_TAG_REPLY, round);

        if (writes != world.writes) {
            writes = world.writes;
            last = round;
        }
        FUZZ_CHECK(2000 > round - last && MESSAGES * WORLD_ROOM > writes);
        world_refuse_none();
        ring_all();
        hear();
        if (NULL != listen) {
            const mca_pml_umrddt_rts_t *rts = of_request_id(listen);

            FUZZ_CHECK(NULL != rts);
            packet.reply = (mca_pml_umrddt_reply_t){
                .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY),
                /* the whole, or else its stripes one after the other */
                .seq = rts->seq + round / MESSAGES % (MCA_PML_UMRDDT_LANES + 2),
                .request_id = rts->request_id,
                .reply_kind = MCA_PML_UMRDDT_REPLY_ACK,
            };
            world_deliver(listen, listen->tag, &packet, sizeof(packet.reply));
        }
        (void) world_copy_done(0, OPAL_SUCCESS);
        (void) world_send_done(0, true);
        (void) world_keyset_done(0, OPAL_SUCCESS);
        (void) world_put_done(0, OPAL_SUCCESS);
        world_progress(false);
    }
}

static void begin(void)
{
    next_set = 1;
    memset(messages, 0, sizeof(messages));
}

const world_target_t world_target = {begin, sent, step, all_over, drain};
