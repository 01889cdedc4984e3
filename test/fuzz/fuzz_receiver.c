/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Our side receives, and the input is the sender: envelopes, notices of failure, FINs, chunks and
 * data, right but for what the input spoils, in any order. A key is named only while it is mapped
 * and its mapping was seen complete, and only to an envelope with the right cookie: one with a
 * wrong cookie is a plain message, answered by nothing and delivered byte by byte. In the end, when
 * the sender sends what it was asked for, all receives are over and nothing is held.
 */

#include "world.h"

#include <arpa/inet.h>

#include "pml_umrddt_pack.h"

/* Receives at once, and what came for them. */
#define RECEIVES 6

/* Answers of ours that are remembered: more than an input has room for. */
#define ANSWERS 1024

typedef struct receive_t {
    ompi_request_t *request; /* NULL: none */
    uint32_t type;
    size_t count;
} receive_t;

/* What the other side has been asked for. */
typedef struct asked_t {
    uint64_t seq;
    uint32_t slot;
    uint32_t fin; /* 0: none */
    uint32_t pair;
} asked_t;

static receive_t receives[RECEIVES];
static asked_t asked[ANSWERS];
static uint32_t asked_count;
static uint64_t next_seq;
static bool any_right; /* an envelope with the right cookie has come */

static void note(uint64_t seq, uint32_t slot, uint32_t fin, uint32_t pair)
{
    if (ANSWERS == asked_count) {
        memmove(&asked[0], &asked[1], sizeof(asked) - sizeof(asked[0]));
        --asked_count;
    }
    asked[asked_count++] = (asked_t){seq, slot, fin, pair};
}

/* A PACK, or a GRANT, of ours: places are named while they are registered, no more chunks granted
 * than there are, and none without a place. */
static void check_pack(const mca_pml_umrddt_reply_t *reply)
{
    FUZZ_CHECK(MCA_PML_UMRDDT_PACK_DEPTH >= reply->key_count);
    if (MCA_PML_UMRDDT_GRANT == reply->verdict) {
        FUZZ_CHECK(0 == reply->key_count && 0 < reply->start);
        return;
    }
    FUZZ_CHECK(0 < reply->chunk && reply->chunk <= reply->total
               && reply->start <= (reply->total - 1) / reply->chunk + 1
               && (0 == reply->key_count || (reply->start <= reply->key_count && 0 != reply->fin)));
    for (uint32_t i = 0; i < reply->key_count; ++i) {
        FUZZ_CHECK(reply->chunk == reply->keys[i].length
                   && world_is_registered(reply->keys[i].addr, reply->keys[i].length,
                                          reply->keys[i].rkey));
    }
}

/* A control message of ours. */
static void sent(int tag, const void *bytes, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = bytes;
    const mca_pml_umrddt_recall_t *recall = bytes;
    const mca_pml_umrddt_direct_t *direct = bytes;
    uint32_t slot, pair;
    int kind;

    FUZZ_CHECK(world_tag(tag, &kind, &slot) && any_right);
    FUZZ_CHECK(MCA_PML_UMRDDT_TAG_REPLY == kind && sizeof(reply->magic) <= length);
    switch (reply->magic & 0xff) {
    case MCA_PML_UMRDDT_KIND_REPLY:
        FUZZ_CHECK(sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) == length);
        pair = ntohl(reply->address.qpn) >> 24;
        if (MCA_PML_UMRDDT_PACK == reply->verdict || MCA_PML_UMRDDT_GRANT == reply->verdict) {
            check_pack(reply);
            if (MCA_PML_UMRDDT_PACK == reply->verdict) {
                note(reply->seq, reply->slot, reply->fin, pair);
            }
            break;
        }
        if (MCA_PML_UMRDDT_DONE != reply->verdict && MCA_PML_UMRDDT_HOST != reply->verdict) {
            note(reply->seq, reply->slot, MCA_PML_UMRDDT_KEYS == reply->verdict ? reply->fin : 0,
                 pair);
        }
        for (uint32_t i = 0; i < reply->key_count; ++i) {
            /* registrations' own keys are those of one piece */
            FUZZ_CHECK(world_is_mapped(&reply->keys[i]));
        }
        break;
    case MCA_PML_UMRDDT_KIND_RECALL:
        FUZZ_CHECK(sizeof(*recall) == length);
        note(recall->seq, recall->slot, recall->fin, 0);
        break;
    case MCA_PML_UMRDDT_KIND_DIRECT:
        FUZZ_CHECK(sizeof(*direct) < length
                   && sizeof(*direct) + direct->region_count * sizeof(direct->regions[0])
                          <= length);
        for (uint32_t i = 0; i < direct->region_count; ++i) {
            FUZZ_CHECK(world_is_registered(direct->regions[i].addr, direct->regions[i].length,
                                           direct->regions[i].rkey));
        }
        note(direct->seq, direct->slot, direct->fin, ntohl(direct->address.qpn) >> 24);
        break;
    default:
        FUZZ_CHECK(MCA_PML_UMRDDT_KIND_FLAT == (reply->magic & 0xff));
        break;
    }
}

static void post(fuzz_bytes_t *input)
{
    receive_t *receive = &receives[fuzz_below(input, RECEIVES)];
    uint8_t flags = fuzz_byte(input);

    if (NULL != receive->request) {
        return;
    }
    receive->type = fuzz_below(input, WORLD_TYPES);
    receive->count = 1 + (flags & 1);
    (void) mca_pml_umrddt_irecv(world_buffer(fuzz_byte(input)), receive->count,
                                world_types[receive->type], flags & 2 ? 1 : OMPI_ANY_SOURCE,
                                flags & 4 ? 5 : OMPI_ANY_TAG, MPI_COMM_WORLD, &receive->request);
}

static void envelope(fuzz_bytes_t *input)
{
    world_request_t *posted = world_posted(-1, fuzz_byte(input));
    uint8_t flags = fuzz_byte(input);
    mca_pml_umrddt_rts_t rts = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS),
        .length = 104 + fuzz_number(input, 2),
        .seq = ++next_seq,
        .pieces = 1 + fuzz_below(input, 1000),
        .schemes = (uint16_t) (fuzz_byte(input) & 0xf7),
        .write_pieces = (uint16_t) (1 + fuzz_below(input, 40)),
        .slot = fuzz_below(input, 8),
        .places = (uint16_t) fuzz_below(input, 9),
        .flats = (uint16_t) fuzz_below(input, 9),
        .address = world_address(0),
    };

    if (NULL == posted) {
        return;
    }
    memcpy(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    rts.chunk = 0 == (flags & 3) ? 0 : rts.length / (flags & 3);
    if (0 != (flags & 4)) {
        for (uint32_t i = 0; i < 2; ++i) {
            rts.rails[i] = world_address(i + 1);
        }
        next_seq += MCA_PML_UMRDDT_RAILS + 1;
    }
    if (0 == (MCA_PML_UMRDDT_BY_ALL & rts.schemes)) {
        rts.schemes |= MCA_PML_UMRDDT_BY_UMR;
    }
    fuzz_patch(input, &rts, sizeof(rts));
    if (0 != (flags & 8)) {
        rts.cookie[flags >> 4] ^= 1;
    }
    any_right = any_right || 0 == memcmp(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    world_deliver(posted, 5, &rts, sizeof(rts) - (0 != (flags & 16) ? fuzz_below(input, 3) : 0));
}

static void plain(fuzz_bytes_t *input)
{
    world_request_t *posted = world_posted(-1, fuzz_byte(input));
    static unsigned char bytes[1024];
    const uint8_t *from;
    size_t length = fuzz_below(input, sizeof(bytes)), have = fuzz_take(input, 104, &from);

    if (NULL != posted) {
        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes, from, have);
        world_deliver(posted, 5, bytes, 0 == fuzz_below(input, 2) ? 104 : length);
    }
}

/* A message of a foreign cookie, to one receive alone: its bytes must be where they belong. */
static void foreign(fuzz_bytes_t *input)
{
    unsigned char *buffer = world_buffer(0), bytes[104];
    uint32_t controls = world.controls, type = fuzz_below(input, WORLD_TYPES);
    mca_pml_umrddt_rts_t rts = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS),
        .length = 5000,
        .seq = 1,
        .schemes = MCA_PML_UMRDDT_BY_CARD,
        .write_pieces = 1,
        .address = world_address(0),
    };
    ompi_request_t *request = NULL;
    size_t room = world_types[type]->super.size;
    world_request_t *posted;

    if (0 < asked_count || 0 < world.request_count || 0 < mca_pml_umrddt.active
        || OMPI_SUCCESS
               != mca_pml_umrddt_irecv(buffer, 1, world_types[type], 1, 5, MPI_COMM_WORLD,
                                       &request)) {
        return;
    }
    world.notice_length = 0;
    memcpy(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    fuzz_patch(input, &rts, sizeof(rts));
    rts.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS);
    rts.cookie[fuzz_below(input, sizeof(rts.cookie))] ^= (uint8_t) (1 + fuzz_below(input, 255));
    if (0 == memcmp(rts.cookie, world.peer->cookie, sizeof(rts.cookie))) {
        rts.cookie[0] ^= 1;
    }
    posted = world_posted(-1, 0);
    FUZZ_CHECK(NULL != posted);
    world_deliver(posted, 5, &rts, sizeof(rts));
    for (int i = 0; i < 4; ++i) {
        world_progress(true);
    }
    FUZZ_CHECK(REQUEST_COMPLETE(request) && controls == world.controls
               && 0 == mca_pml_umrddt.active);
    FUZZ_CHECK(sizeof(rts) == request->req_status._ucount
               && (sizeof(rts) <= room ? MPI_SUCCESS : MPI_ERR_TRUNCATE)
                      == request->req_status.MPI_ERROR);
    room = room < sizeof(bytes) ? room : sizeof(bytes);
    (void) mca_pml_umrddt_pack(buffer, 1, world_types[type], bytes, room);
    FUZZ_CHECK(0 == memcmp(bytes, &rts, room));
    ompi_request_free(&request);
}

static void notice(fuzz_bytes_t *input)
{
    const asked_t *of = 0 == asked_count ? NULL : &asked[fuzz_below(input, 64) % asked_count];

    world.notice = (mca_pml_umrddt_fail_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FAIL),
        .seq = NULL == of ? next_seq : of->seq,
        .slot = NULL == of ? 0 : of->slot,
        .in_flight = fuzz_byte(input) & 1,
        .written = fuzz_below(input, 8), /* chunks, if it travels in such */
    };
    fuzz_patch(input, &world.notice, sizeof(world.notice));
    world.notice_length =
        0 == fuzz_below(input, 8) ? 1 + fuzz_below(input, 40) : sizeof(world.notice);
    any_right = true; /* whoever sends one has met us */
    world_progress(true);
}

static void fin(fuzz_bytes_t *input)
{
    uint32_t number = fuzz_byte(input);

    if (0 < asked_count && 0 != (number & 1)) {
        const asked_t *of = &asked[(number >> 1) % asked_count];

        world_fin(of->pair, of->fin);
    } else {
        world_fin(fuzz_byte(input), (uint32_t) fuzz_number(input, 4));
    }
}

/* What the host brings: the whole message, or a chunk. */
static void data(fuzz_bytes_t *input)
{
    static unsigned char bytes[WORLD_ROOM];
    world_request_t *posted = world_posted(MCA_PML_UMRDDT_TAG_DATA, fuzz_byte(input));
    size_t length;

    if (NULL != posted) {
        length = posted->count * posted->datatype->super.size;
        length = length < sizeof(bytes) ? length : sizeof(bytes);
        switch (fuzz_below(input, 4)) {
        case 0:
            length = 0;
            break;
        case 1:
            length = fuzz_below(input, sizeof(bytes));
            break;
        default:
            break;
        }
        world_deliver(posted, posted->tag, bytes, length);
    }
}

static bool any_open(void)
{
    bool open = false;

    for (uint32_t i = 0; i < RECEIVES; ++i) {
        open = open || NULL != receives[i].request;
    }
    return open;
}

static bool all_over(void)
{
    bool over = true;

    for (uint32_t i = 0; i < RECEIVES; ++i) {
        if (NULL != receives[i].request && REQUEST_COMPLETE(receives[i].request)) {
            ompi_request_free(&receives[i].request);
            receives[i].request = NULL;
        }
        over = over && NULL == receives[i].request;
    }
    return over && 0 == mca_pml_umrddt.active;
}

static void step(fuzz_bytes_t *input)
{
    switch (fuzz_below(input, 12)) {
    case 0:
    case 1:
        post(input);
        break;
    case 2:
    case 3:
    case 4:
        envelope(input);
        break;
    case 5:
        plain(input);
        break;
    case 6:
        foreign(input);
        break;
    case 7:
        notice(input);
        break;
    case 8:
        fin(input);
        break;
    case 9:
        data(input);
        break;
    case 10:
        (void) world_keyset_done(fuzz_byte(input),
                                 fuzz_byte(input) & 1 ? OPAL_SUCCESS : OPAL_ERROR);
        (void) world_send_done(fuzz_byte(input), true);
        break;
    default:
        world_refuse(input, 5);
        break;
    }
    world_progress(false);
}

/* A sender that does what it was asked for: it must come to an end. */
static void drain(void)
{
    static unsigned char bytes[WORLD_ROOM];

    for (uint32_t round = 0; !all_over(); ++round) {
        world_request_t *posted;

        FUZZ_CHECK(20 * ANSWERS > round);
        world.refuse_sends = world.refuse_recvs = world.refuse_keys = world.refuse_memory =
            world.refuse_fins = 0;
        if (NULL != (posted = world_posted(-1, 0))) {
            world_deliver(posted, 5, bytes, 8);
        }
        if (NULL != (posted = world_posted(MCA_PML_UMRDDT_TAG_DATA, 0))) {
            size_t length = posted->count * posted->datatype->super.size;

            world_deliver(posted, posted->tag, bytes,
                          length < sizeof(bytes) ? length : sizeof(bytes));
        }
        (void) world_send_done(0, true);
        (void) world_keyset_done(0, OPAL_SUCCESS);
        if (0 < asked_count) {
            asked_t *of = &asked[round % asked_count];

            world_fin(0 == round / asked_count % 4 ? of->pair : round / asked_count, of->fin);
            if (any_open() && 8 * asked_count + 50 < round) {
                /* That endpoint is broken: the sender's writes have failed, and it says so. Not
                 * for ever: each time it is answered, and the answer is something under way. */
                world.notice = (mca_pml_umrddt_fail_t){
                    .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_FAIL),
                    .seq = of->seq,
                    .slot = of->slot,
                    .in_flight = 1,
                };
                world.notice_length = sizeof(world.notice);
                world_progress(true);
            }
        }
        world_progress(false);
    }
}

static void begin(void)
{
    memset(receives, 0, sizeof(receives));
    asked_count = 0;
    next_seq = 0;
    any_right = false;
}

const world_target_t world_target = {begin, sent, step, all_over, drain};
