/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Our side receives, and the input is the sender: envelopes, NACKs, hints, FINs, chunks and data,
 * correct except where the input corrupts them, in any order. Keys are sent only while they are
 * mapped and the completion of the mapping was seen, and only to an envelope with the right cookie.
 * An envelope with a wrong cookie is a plain message: it gets no reply and is delivered byte by
 * byte. A sender that offers GPU memory gets queries, and its INFO messages contain what the input
 * selects: only mapped memory is read, and only the completion flag of a waiting process is set. At
 * the end the sender sends what was requested; then all receives are complete and no resource is
 * held.
 */

#include "world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

/* Receives at once, and what came for them. */
#define RECEIVES 6

/* Recorded replies of ours: more than an input can cause. */
#define ANSWERS 1024

/* Envelopes, and questions about them: the same. */
#define ENVELOPES 512

typedef struct receive_t {
    ompi_request_t *request; /* NULL: none */
    uint32_t type;
    size_t count;
} receive_t;

/* Requests to the other side. */
typedef struct requested_t {
    uint64_t seq;
    uint32_t request_id;
    uint32_t fin; /* 0: none */
    uint32_t pair;
} requested_t;

/* What came, and of what it was made. */
typedef struct envelope_t {
    mca_pml_umrddt_rts_t rts;
    uint32_t type;
    uint32_t owned; /* the allocation */
} envelope_t;

/* A query to the sender. */
typedef struct question_t {
    const envelope_t *of;
    uint32_t what; /* MCA_PML_UMRDDT_INFO_* */
    uint32_t flat; /* bytes of the layout that it has sent already */
} question_t;

/* Memory of completion flags, as the sender may describe it. */
typedef enum done_flags_t {
    DONE_FLAGS_NONE = 0,
    DONE_FLAGS_RIGHT = 1,
    DONE_FLAGS_OPEN = 2,   /* not sealed: it could shrink under us */
    DONE_FLAGS_FOREIGN = 3 /* another process's cookie */
} done_flags_t;

static envelope_t envelopes[ENVELOPES];
static uint32_t envelope_count;
static question_t questions[ENVELOPES];
static uint32_t question_count;
static int done_flags_fd[4] = {-1, -1, -1, -1};
static opal_umrddt_done_flags_t *done_flags; /* those of DONE_FLAGS_RIGHT */
static bool any_done_flag;                   /* an envelope requested one */

static receive_t receives[RECEIVES];
static requested_t requested[ANSWERS];
static uint32_t requested_count;
static uint64_t next_seq;
static bool any_right; /* an envelope with the right cookie has come */

static void note(uint64_t seq, uint32_t request_id, uint32_t fin, uint32_t pair)
{
    if (ANSWERS == requested_count) {
        memmove(&requested[0], &requested[1], sizeof(requested) - sizeof(requested[0]));
        --requested_count;
    }
    requested[requested_count++] = (requested_t){seq, request_id, fin, pair};
}

/* A PACK, or a GRANT, of ours: places are named while they are registered, no more chunks granted
 * than there are, and none without a place. */
static void check_pack(const mca_pml_umrddt_reply_t *reply)
{
    FUZZ_CHECK(MCA_PML_UMRDDT_PACK_DEPTH >= reply->key_count);
    if (MCA_PML_UMRDDT_REPLY_CREDIT == reply->reply_kind) {
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

/* An ASK of ours: of who offered its memory. */
static void check_query(const mca_pml_umrddt_reply_t *reply)
{
    const envelope_t *of = envelopes;

    FUZZ_CHECK(0 != reply->what && 0 == (~MCA_PML_UMRDDT_INFO_ALL & reply->what)
               && 0 == reply->key_count);
    while (reply->seq != of->rts.seq || reply->request_id != of->rts.request_id
           || 0 == (MCA_PML_UMRDDT_BIT_IPC & of->rts.schemes)) {
        FUZZ_CHECK(&envelopes[envelope_count] > ++of);
    }
    FUZZ_CHECK(ENVELOPES > question_count);
    questions[question_count++] = (question_t){of, reply->what, 0};
}

/* A control message of ours. */
static void sent(int tag, const void *bytes, size_t length)
{
    const mca_pml_umrddt_reply_t *reply = bytes;
    const mca_pml_umrddt_cts_cached_t *cached_cts = bytes;
    const mca_pml_umrddt_cts_sgl_t *direct = bytes;
    uint32_t request_id, pair;
    int kind;

    FUZZ_CHECK(world_tag(tag, &kind, &request_id));
    if (MCA_PML_UMRDDT_TAG_NACK == kind) {
        const mca_pml_umrddt_hint_header_t *hint = bytes;

        FUZZ_CHECK(sizeof(*hint) == length
                   && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_HINT) == hint->magic
                   && 0 <= hint->tag);
        return;
    }
    FUZZ_CHECK(any_right && MCA_PML_UMRDDT_TAG_REPLY == kind && sizeof(reply->magic) <= length);
    switch (reply->magic & 0xff) {
    case MCA_PML_UMRDDT_KIND_REPLY:
        FUZZ_CHECK(sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) == length);
        pair = ntohl(reply->address.qpn) >> 24;
        if (MCA_PML_UMRDDT_REPLY_CTS_PACK == reply->reply_kind
            || MCA_PML_UMRDDT_REPLY_CREDIT == reply->reply_kind) {
            check_pack(reply);
            if (MCA_PML_UMRDDT_REPLY_CTS_PACK == reply->reply_kind) {
                note(reply->seq, reply->request_id, reply->fin, pair);
            }
            break;
        }
        if (MCA_PML_UMRDDT_REPLY_INFO_REQ == reply->reply_kind) {
            check_query(reply);
        }
        if (MCA_PML_UMRDDT_REPLY_ACK != reply->reply_kind
            && MCA_PML_UMRDDT_REPLY_FALLBACK != reply->reply_kind) {
            note(reply->seq, reply->request_id,
                 MCA_PML_UMRDDT_REPLY_CTS == reply->reply_kind ? reply->fin : 0, pair);
        }
        for (uint32_t i = 0; i < reply->key_count; ++i) {
            /* registrations' own keys are those of one piece */
            FUZZ_CHECK(world_is_mapped(&reply->keys[i]));
        }
        break;
    case MCA_PML_UMRDDT_KIND_CTS_CACHED:
        FUZZ_CHECK(sizeof(*cached_cts) == length);
        note(cached_cts->seq, cached_cts->request_id, cached_cts->fin, 0);
        break;
    case MCA_PML_UMRDDT_KIND_CTS_SGL:
        FUZZ_CHECK(sizeof(*direct) < length
                   && sizeof(*direct) + direct->region_count * sizeof(direct->regions[0])
                          <= length);
        for (uint32_t i = 0; i < direct->region_count; ++i) {
            FUZZ_CHECK(world_is_registered(direct->regions[i].addr, direct->regions[i].length,
                                           direct->regions[i].rkey));
        }
        note(direct->seq, direct->request_id, direct->fin, ntohl(direct->address.qpn) >> 24);
        break;
    default:
        FUZZ_CHECK(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG == (reply->magic & 0xff));
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

/* Offer memory of the other process, right. */
static void offer_ipc(fuzz_bytes_t *input, mca_pml_umrddt_rts_t *rts, envelope_t *noted)
{
    uint8_t how = fuzz_byte(input);
    opal_iov_cache_layout_t *layout;

    if (0 == (how & 3)) {
        return;
    }
    noted->type = fuzz_below(input, WORLD_TYPES);
    noted->owned = (uint32_t) (how >> 2) % WORLD_OWNED;
    FUZZ_CHECK(OMPI_SUCCESS == mca_pml_umrddt_layout(world_types[noted->type], 1, &layout));
    rts->schemes = MCA_PML_UMRDDT_BIT_IPC | (0 != (how & 16) ? MCA_PML_UMRDDT_DONE_FLAG : 0)
                   | (0 != (how & 32) ? MCA_PML_UMRDDT_BITS_PACK | MCA_PML_UMRDDT_ON_GPU : 0)
                   | (0 != (how & 128) ? MCA_PML_UMRDDT_BITS_HCA : 0);
    rts->length = layout->size;
    rts->chunk = 0;
    rts->pieces = (uint32_t) layout->iov_count;
    rts->buffer_id = world_owned[noted->owned].buffer_id;
    rts->buffer = world_owned[noted->owned].base + (0 != (how & 64) ? fuzz_number(input, 2) : 0);
    rts->layout = 1 + noted->type; /* the sender's id */
    rts->lb = layout->lb;
    OBJ_RELEASE(layout);
}

/* Any schemes; with the highest bit from a GPU (ON_GPU), or to GPUs only (IF_GPU) with 8, too. */
static uint16_t schemes_of(uint8_t byte)
{
    uint16_t schemes = byte & MCA_PML_UMRDDT_BITS_ALL;

    if (0 != (byte & 0x80)) {
        schemes |= 0 != (byte & 8) ? MCA_PML_UMRDDT_IF_GPU : MCA_PML_UMRDDT_ON_GPU;
    }
    return schemes;
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
        .schemes = schemes_of(fuzz_byte(input)),
        .write_pieces = (uint16_t) (1 + fuzz_below(input, 40)),
        .request_id = fuzz_below(input, 8),
        .slots = (uint16_t) fuzz_below(input, 9),
        .flats = (uint16_t) fuzz_below(input, 9),
        .address = world_address(0),
    };

    envelope_t *noted = &envelopes[envelope_count];

    if (NULL == posted) {
        return;
    }
    memcpy(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    rts.chunk = 0 == (flags & 3) ? 0 : rts.length / (flags & 3);
    if (0 != (flags & 4)) {
        for (uint32_t i = 0; i < 2; ++i) {
            rts.lanes[i] = world_address(i + 1);
        }
        next_seq += MCA_PML_UMRDDT_LANES + 1;
    }
    if (0 == (MCA_PML_UMRDDT_BITS_ALL & rts.schemes)) {
        rts.schemes |= MCA_PML_UMRDDT_BIT_UMR;
    }
    if (world.gpu) {
        offer_ipc(input, &rts, noted);
    }
    fuzz_patch(input, &rts, sizeof(rts));
    if (0 != (flags & 8)) {
        rts.cookie[flags >> 4] ^= 1;
    }
    any_right = any_right || 0 == memcmp(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    any_done_flag = any_done_flag || 0 != (MCA_PML_UMRDDT_DONE_FLAG & rts.schemes);
    noted->rts = rts;
    FUZZ_CHECK(ENVELOPES > ++envelope_count);
    world_deliver(posted, 5, &rts, sizeof(rts) - (0 != (flags & 16) ? fuzz_below(input, 3) : 0));
}

/* ---- the sender's INFO messages about its memory ---- */

static union {
    unsigned char bytes[8192];
    mca_pml_umrddt_info_t info;
    mca_pml_umrddt_layout_frag_t flat;
} packet;

/* The @p i-th query on a request id; NULL: there was none */
static question_t *question_of(const world_request_t *listen, uint32_t i)
{
    question_t *found[ENVELOPES];
    uint32_t count = 0, request_id;
    int kind;

    (void) world_tag(listen->tag, &kind, &request_id);
    for (uint32_t j = 0; j < question_count; ++j) {
        if (request_id == questions[j].of->rts.request_id) {
            found[count++] = &questions[j];
        }
    }
    return 0 == count ? NULL : found[i % count];
}

/* A part of the flattened layout; @return the packet's length */
static size_t make_part(question_t *question, const unsigned char *flat, size_t length)
{
    size_t part = (length - question->flat) / 2;

    packet.flat = (mca_pml_umrddt_layout_frag_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = question->of->rts.seq,
        .request_id = question->of->rts.request_id,
        .flat_bytes = (uint32_t) length,
        .layout = question->of->rts.layout,
        .offset = question->flat,
    };
    memcpy(packet.flat.bytes, flat + question->flat, part);
    question->flat += (uint32_t) part;
    return sizeof(packet.flat) + part;
}

/* An INFO message with all requested data that is in @p what, with the rest of the layout. */
static size_t make_report(const question_t *question, uint32_t what, done_flags_t which,
                          const unsigned char *flat, size_t length)
{
    const envelope_t *of = question->of;
    size_t rest = 0;

    packet.info = (mca_pml_umrddt_info_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO),
        .seq = of->rts.seq,
        .request_id = of->rts.request_id,
        .what = question->what & what,
        .layout = of->rts.layout,
        .done_flag_pid = DONE_FLAGS_NONE == which ? 0 : (uint32_t) getpid(),
        .done_flag_fd = DONE_FLAGS_NONE == which ? 0 : (uint32_t) done_flags_fd[which],
    };
    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & packet.info.what)) {
        packet.info.export = world_owned[of->owned];
    }
    if (0 != (MCA_PML_UMRDDT_INFO_LAYOUT & packet.info.what)) {
        packet.info.flat_bytes = (uint32_t) length;
        rest = question->flat < length ? length - question->flat : 0;
        memcpy(packet.info.bytes, flat + (length - rest), rest);
    }
    return sizeof(packet.info) + rest;
}

static void info(fuzz_bytes_t *input)
{
    world_request_t *listen = world_posted(MCA_PML_UMRDDT_TAG_INFO, fuzz_byte(input));
    uint8_t how = fuzz_byte(input);
    unsigned char flat[4096];
    question_t *question;
    const uint8_t *bytes;
    size_t length;

    if (NULL == listen || NULL == (question = question_of(listen, how >> 5))) {
        return;
    }
    memset(&packet, 0, sizeof(packet));
    length = 0 != (how & 16) ? world_flat(input, flat, sizeof(flat))
                             : world_flat_of(question->of->type, flat, sizeof(flat));
    switch (how & 3) {
    case 0:
        if (question->flat < length) {
            length = make_part(question, flat, length);
            break;
        }
        /* Fall through: all has been sent */
    case 1:
        length = make_report(question, MCA_PML_UMRDDT_INFO_ALL, (done_flags_t) (how >> 2 & 3), flat,
                             length);
        break;
    case 2:
        length = make_report(question, fuzz_byte(input) & 3, (done_flags_t) (how >> 2 & 3), flat,
                             length);
        break;
    default:
        length = fuzz_take(input, 200, &bytes);
        memcpy(packet.bytes, bytes, length);
        break;
    }
    fuzz_patch(input, packet.bytes, length);
    if (sizeof(packet.info) <= length && 0 != (how & 0x60)
        && 0 != (MCA_PML_UMRDDT_INFO_EXPORT & packet.info.what)) {
        /* by an attacker with the right checksum */
        packet.info.export.check = opal_umrddt_gpu_export_check(&packet.info.export);
    }
    if (0 == fuzz_below(input, 8)) {
        length = fuzz_below(input, sizeof(packet.bytes));
    }
    world_deliver(listen, listen->tag, packet.bytes, length);
}

/* The right one, or one that refuses. */
static void report_well(uint32_t round)
{
    world_request_t *listen = world_posted(MCA_PML_UMRDDT_TAG_INFO, round);
    question_t *question;
    unsigned char flat[4096];
    size_t length;

    /* (the base PML may have refused to send the query until now) */
    if (NULL != listen && NULL != (question = question_of(listen, round / 2))) {
        memset(&packet, 0, sizeof(packet));
        length = world_flat_of(question->of->type, flat, sizeof(flat));
        length = make_report(question, 0 != (round & 1) ? MCA_PML_UMRDDT_INFO_ALL : 0,
                             DONE_FLAGS_RIGHT, flat, length);
        world_deliver(listen, listen->tag, packet.bytes, length);
    }
}

/* ---- completion flags ---- */

static void done_flags_make(done_flags_t which, unsigned seals, uint8_t cookie)
{
    opal_umrddt_done_flags_t *at;

    done_flags_fd[which] = memfd_create("done_flags", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    FUZZ_CHECK(0 <= done_flags_fd[which]
               && 0 == ftruncate(done_flags_fd[which], (off_t) sizeof(*at))
               && 0 == fcntl(done_flags_fd[which], F_ADD_SEALS, seals));
    at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED, done_flags_fd[which], 0);
    FUZZ_CHECK(MAP_FAILED != at);
    memset(at->cookie, cookie, sizeof(at->cookie));
    if (DONE_FLAGS_RIGHT == which) {
        done_flags = at;
    } else {
        (void) munmap(at, sizeof(*at));
    }
}

/* The flag of a message is set only if requested, by its number, and no other flag. */
static void check_done_flags(void)
{
    for (uint32_t request_id = 0; any_done_flag && request_id < OPAL_UMRDDT_DONE_FLAGS;
         ++request_id) {
        uint64_t word = done_flags->done_flags[request_id].word;
        const envelope_t *of = envelopes;

        while (0 != word
               && (word >> 2 != (of->rts.seq & UINT64_MAX >> 2) || request_id != of->rts.request_id
                   || 0 == (MCA_PML_UMRDDT_DONE_FLAG & of->rts.schemes))) {
            FUZZ_CHECK(&envelopes[envelope_count] > ++of);
        }
        FUZZ_CHECK(0 == word || OPAL_UMRDDT_DONE_FLAG_DONE == (word & 3)
                   || OPAL_UMRDDT_DONE_FLAG_REPLY == (word & 3));
    }
}

static void plain(fuzz_bytes_t *input)
{
    world_request_t *posted = world_posted(-1, fuzz_byte(input));
    static unsigned char bytes[1024];
    const uint8_t *from;
    size_t length = fuzz_below(input, sizeof(bytes)), have = fuzz_take(input, 104, &from);

    if (NULL != posted) {
        envelope_t *noted = &envelopes[envelope_count];

        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes, from, have);
        /* it may be an envelope, after all: the cookie is no secret to the peer */
        *noted = (envelope_t){.type = 0};
        memcpy(&noted->rts, bytes, sizeof(noted->rts));
        any_right =
            any_right
            || 0 == memcmp(noted->rts.cookie, world.peer->cookie, sizeof(noted->rts.cookie));
        any_done_flag = any_done_flag || 0 != (MCA_PML_UMRDDT_DONE_FLAG & noted->rts.schemes);
        FUZZ_CHECK(ENVELOPES > ++envelope_count);
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
        .schemes = MCA_PML_UMRDDT_BITS_HCA,
        .write_pieces = 1,
        .address = world_address(0),
    };
    ompi_request_t *request = NULL;
    size_t room = world_types[type]->super.size;
    world_request_t *posted;
    uint8_t flip;

    if (0 < requested_count || 0 < world.request_count || 0 < mca_pml_umrddt.active
        || OMPI_SUCCESS
               != mca_pml_umrddt_irecv(buffer, 1, world_types[type], 1, 5, MPI_COMM_WORLD,
                                       &request)) {
        return;
    }
    world.notice_length = 0;
    memcpy(rts.cookie, world.peer->cookie, sizeof(rts.cookie));
    fuzz_patch(input, &rts, sizeof(rts));
    rts.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS);
    flip = (uint8_t) (1 + fuzz_below(input, 255));
    rts.cookie[fuzz_below(input, sizeof(rts.cookie))] ^= flip;
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
    const requested_t *of =
        0 == requested_count ? NULL : &requested[fuzz_below(input, 64) % requested_count];
    const uint8_t flags = fuzz_byte(input);
    const bool hint = 0 != (flags & 0x80);
    size_t size = sizeof(world.notice);

    world.notice = (mca_pml_umrddt_nack_header_t){
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_NACK),
        .seq = NULL == of ? next_seq : of->seq,
        .request_id = NULL == of ? 0 : of->request_id,
        .in_flight = flags & 1,
        .written = fuzz_below(input, 8), /* chunks, if it travels in such */
    };
    if (hint) {
        world.hint =
            (mca_pml_umrddt_hint_header_t){.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_HINT),
                                           .comm = UMRDDT_COMM_ID(&ompi_mpi_comm_world.comm),
                                           .time = UINT64_MAX,
                                           .rank = 1,
                                           .tag = flags & 3};
        size = sizeof(world.hint);
    }
    fuzz_patch(input, &world.notice, size);
    world.notice_length = 0 == fuzz_below(input, 8) ? 1 + fuzz_below(input, 40) : size;
    any_right = true; /* whoever sends one has met us */
    world_progress(true);
}

static void fin(fuzz_bytes_t *input)
{
    uint32_t number = fuzz_byte(input);

    if (0 < requested_count && 0 != (number & 1)) {
        const requested_t *of = &requested[(number >> 1) % requested_count];

        world_fin(of->pair, of->fin);
    } else {
        number = fuzz_byte(input); /* a pair of HCAs */
        world_fin(number, (uint32_t) fuzz_number(input, 4));
    }
}

/* Data from the base PML: the whole message, or a chunk. */
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
    switch (fuzz_below(input, world.gpu ? 16 : 12)) {
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
        world_keyset_end(input);
        (void) world_send_done(fuzz_byte(input), true);
        break;
    case 11:
        world_refuse(input, 5);
        break;
    case 12:
        world_copy_end(input);
        break;
    default:
        info(input);
        break;
    }
    world_progress(false);
    check_done_flags();
}

/* Of each message the last answer: a message that is written a byte at a time has a thousand,
 * behind which those of others would hardly come to their turn. */
static void keep_last(void)
{
    uint32_t cached = 0;

    for (uint32_t i = 0; i < requested_count; ++i) {
        uint32_t later = i + 1;

        while (later < requested_count
               && (requested[i].seq != requested[later].seq
                   || requested[i].request_id != requested[later].request_id)) {
            ++later;
        }
        if (later == requested_count) {
            requested[cached++] = requested[i];
        }
    }
    requested_count = cached;
}

/* A sender that does what was requested: the messages must end. */
static void drain(void)
{
    static unsigned char bytes[WORLD_ROOM];

    for (uint32_t round = 0; !all_over(); ++round) {
        world_request_t *posted;

        FUZZ_CHECK(20 * ANSWERS > round);
        if (64 < requested_count) {
            keep_last();
        }
        world_refuse_none();
        report_well(round);
        (void) world_copy_done(0, OPAL_SUCCESS);
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
        if (0 < requested_count) {
            requested_t *of = &requested[round % requested_count];

            world_fin(0 == round / requested_count % 4 ? of->pair : round / requested_count,
                      of->fin);
            if (any_open() && 8 * requested_count + 50 < round) {
                /* That endpoint is broken: the sender's writes have failed, and it sends a NACK.
                 * Not for ever: each NACK is answered, and the answer is a pending operation. */
                world.notice = (mca_pml_umrddt_nack_header_t){
                    .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_NACK),
                    .seq = of->seq,
                    .request_id = of->request_id,
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
    if (NULL == done_flags) {
        done_flags_make(DONE_FLAGS_RIGHT, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0x22);
        done_flags_make(DONE_FLAGS_OPEN, 0, 0x22);
        done_flags_make(DONE_FLAGS_FOREIGN, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0x33);
    }
    for (uint32_t request_id = 0; any_done_flag && request_id < OPAL_UMRDDT_DONE_FLAGS;
         ++request_id) {
        done_flags->done_flags[request_id].word = 0;
    }
    any_done_flag = false;
    envelope_count = question_count = 0;
    memset(receives, 0, sizeof(receives));
    requested_count = 0;
    next_seq = 0;
    any_right = false;
}

const world_target_t world_target = {begin, sent, step, all_over, drain};
