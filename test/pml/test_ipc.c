/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The control messages for GPU memory on the same node, and the caches of receivers about senders:
 * random layouts sent in parts and decoded; the same with every byte wrong in turn, with wrong
 * lengths, and with invalid numbers. Accepted data must agree with the envelope; all else must be
 * refused.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

#define PACKET_ROOM MCA_PML_UMRDDT_INFO_ROOM
#include "packets.h"

enum {
    LAYOUTS = 7
};

static opal_iov_cache_layout_t *layouts[LAYOUTS];

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

static mca_pml_umrddt_rts_t rts_of(const opal_iov_cache_layout_t *layout)
{
    return (mca_pml_umrddt_rts_t){
        .length = layout->size,
        .seq = 77,
        .pieces = (uint32_t) layout->iov_count,
        .schemes = MCA_PML_UMRDDT_BIT_IPC,
        .write_pieces = 1,
        .request_id = 5,
        .buffer_id = 1234,
        .buffer = 1 << 20,
        .layout = layout->id,
        .lb = layout->lb,
    };
}

/* The INFO message of the sender for this message, as requested. */
static void emit_all(const opal_iov_cache_layout_t *layout, const mca_pml_umrddt_rts_t *rts,
                     uint32_t what, packets_t *packets)
{
    mca_pml_umrddt_info_t info = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_INFO),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .what = what,
        .layout = rts->layout,
    };
    mca_pml_umrddt_layout_frag_t part = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG),
        .seq = rts->seq,
        .request_id = rts->request_id,
        .layout = rts->layout,
    };
    int rc;

    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & what)) {
        info.export.buffer_id = rts->buffer_id;
        memset(info.export.handle, 0x5a, sizeof(info.export.handle));
    }
    if (0 != (MCA_PML_UMRDDT_INFO_LAYOUT & what)) {
        info.flat_bytes = (uint32_t) opal_iov_cache_form_flatten(layout->form, NULL, 0);
    }
    part.flat_bytes = info.flat_bytes;
    packets_to = packets;
    rc = mca_pml_umrddt_flat_send(NULL, 0, 0, &info, sizeof(info), &part, layout->form,
                                  MCA_PML_UMRDDT_INFO_ROOM);
    CHECK(OMPI_SUCCESS == rc || packets->count == packets->fails_at);
}

/* What the receiver does with what came. */
static int take(const packets_t *packets, const mca_pml_umrddt_rts_t *rts, uint32_t requested,
                opal_iov_cache_layout_t **from)
{
    mca_pml_umrddt_parts_t *parts = NULL;
    int rc = OMPI_SUCCESS;

    for (int i = 0; OMPI_SUCCESS == rc && i + 1 < packets->count; ++i) {
        rc = mca_pml_umrddt_direct_part(packets->bytes[i], packets->length[i],
                                        MCA_PML_UMRDDT_MAX_INFO_FLAT, &parts);
    }
    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_info_read(packets->bytes[packets->count - 1],
                                      packets->length[packets->count - 1], rts, requested, parts,
                                      from);
    }
    free(parts);
    return rc;
}

/* Every layout arrives unchanged, with any split into INFO messages; also if memory is short. */
static void exchanges(void)
{
    for (int i = 0; i < LAYOUTS; ++i) {
        mca_pml_umrddt_rts_t rts = rts_of(layouts[i]);

        for (uint32_t what = 0; what <= MCA_PML_UMRDDT_INFO_ALL; ++what) {
            packets_t packets = {.fails_at = -1};
            bool flat = 0 != (MCA_PML_UMRDDT_INFO_LAYOUT & what);
            opal_iov_cache_layout_t *from = NULL;
            const mca_pml_umrddt_info_t *info;
            int count;

            emit_all(layouts[i], &rts, what, &packets);
            info = packets.bytes[packets.count - 1];
            CHECK(OMPI_SUCCESS == take(&packets, &rts, MCA_PML_UMRDDT_INFO_ALL, &from));
            CHECK(what == info->what);
            CHECK(flat == (NULL != from));
            if (flat) {
                CHECK(opal_iov_cache_form_equal(layouts[i]->form, from->form));
                OBJ_RELEASE(from);
            }
            /* data that was not requested is not accepted */
            for (uint32_t requested = 0; requested <= MCA_PML_UMRDDT_INFO_ALL; ++requested) {
                from = NULL;
                CHECK((0 == (what & ~requested) ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM)
                      == take(&packets, &rts, requested, &from));
                if (NULL != from) {
                    OBJ_RELEASE(from);
                }
            }
            for (int fails = 0; flat && fails < 6; ++fails) {
                int rc;

                from = NULL;
                no_memory = fails;
                rc = take(&packets, &rts, MCA_PML_UMRDDT_INFO_ALL, &from);
                CHECK(OMPI_SUCCESS == rc || (OMPI_ERR_OUT_OF_RESOURCE == rc && -1 == no_memory));
                no_memory = -1;
                CHECK((OMPI_SUCCESS == rc) == (NULL != from));
                if (NULL != from) {
                    OBJ_RELEASE(from);
                }
            }
            count = packets.count;
            packets_free(&packets);
            packets.fails_at = count - 1; /* the base PML refuses the last one */
            emit_all(layouts[i], &rts, what, &packets);
            CHECK(packets.count == count - 1);
            packets_free(&packets);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Garbled
 * ------------------------------------------------------------------------------------------- */

/* Whatever came: an error, or the layout and the allocation that the envelope names. */
static int garbled(const packets_t *packets, const mca_pml_umrddt_rts_t *rts)
{
    const mca_pml_umrddt_info_t *info = packets->bytes[packets->count - 1];
    opal_iov_cache_layout_t *from = NULL;
    int rc = take(packets, rts, MCA_PML_UMRDDT_INFO_ALL, &from);

    if (OMPI_SUCCESS != rc) {
        CHECK(OMPI_ERR_BAD_PARAM == rc);
        CHECK(NULL == from);
        return rc;
    }
    CHECK(0 == (MCA_PML_UMRDDT_INFO_EXPORT & info->what)
          || rts->buffer_id == info->export.buffer_id);
    CHECK((0 != (MCA_PML_UMRDDT_INFO_LAYOUT & info->what)) == (NULL != from));
    if (NULL != from) {
        CHECK(NULL == opal_iov_cache_form_check(from->form));
        CHECK(rts->length == from->size && rts->lb == from->lb && rts->pieces == from->iov_count);
        OBJ_RELEASE(from);
    }
    return rc;
}

/* Every byte of every packet gets some other values, and every packet is cut and lengthened. */
static void garble(int which, uint32_t what, unsigned seed)
{
    mca_pml_umrddt_rts_t rts = rts_of(layouts[which]);
    packets_t packets = {.fails_at = -1};
    size_t step;

    emit_all(layouts[which], &rts, what, &packets);
    CHECK(OMPI_SUCCESS == garbled(&packets, &rts));
    for (int i = 0; i < packets.count; ++i) {
        unsigned char *bytes = packets.bytes[i];

        /* all of a header, and some of what follows */
        for (size_t k = 0; k < packets.length[i]; k += step) {
            unsigned char was = bytes[k];

            step = k < 200 ? 1 : 1 + (size_t) rand_r(&seed) % (packets.length[i] / 50 + 1);
            for (int bit = 0; bit < 8; ++bit) {
                bytes[k] = (unsigned char) (was ^ 1 << bit);
                (void) garbled(&packets, &rts);
            }
            bytes[k] = was;
        }
        /* shorter and longer than its length field */
        for (int change = -3; change <= 3; ++change) {
            packet_t was =
                packet_resize(&packets, i, packets.length[i] + (size_t) (int64_t) change);

            CHECK((0 == change ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM) == garbled(&packets, &rts));
            packet_restore(&packets, i, was);
        }
        for (size_t length = 0; length < sizeof(mca_pml_umrddt_info_t); ++length) {
            packet_t was = packet_resize(&packets, i, length);

            if (length >= sizeof(mca_pml_umrddt_layout_frag_t) || i + 1 == packets.count) {
                CHECK(OMPI_SUCCESS != garbled(&packets, &rts));
            }
            packet_restore(&packets, i, was);
        }
    }
    packets_free(&packets);
}

/* One field with a number that makes no sense, or is of another message. */
static void fields(void)
{
    mca_pml_umrddt_rts_t rts = rts_of(layouts[1]);
    packets_t packets = {.fails_at = -1};
    mca_pml_umrddt_info_t *made;

    emit_all(layouts[1], &rts, MCA_PML_UMRDDT_INFO_ALL, &packets);
    CHECK(1 == packets.count);
    made = packets.bytes[0];

#define WRONG(code, ...)                          \
    do {                                          \
        mca_pml_umrddt_info_t was = *made;        \
        mca_pml_umrddt_rts_t rts_was = rts;       \
        __VA_ARGS__;                              \
        CHECK((code) == garbled(&packets, &rts)); \
        *made = was;                              \
        rts = rts_was;                            \
    } while (0)

    WRONG(OMPI_SUCCESS, (void) 0);
    WRONG(OMPI_ERR_BAD_PARAM, ++made->magic);
    WRONG(OMPI_ERR_BAD_PARAM, made->magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG));
    WRONG(OMPI_ERR_BAD_PARAM, ++made->seq);
    WRONG(OMPI_ERR_BAD_PARAM, ++made->request_id);
    WRONG(OMPI_ERR_BAD_PARAM, ++made->layout);
    WRONG(OMPI_ERR_BAD_PARAM, made->reserved = 1);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = 0);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = 4);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = UINT32_MAX);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = MCA_PML_UMRDDT_INFO_EXPORT);
    WRONG(OMPI_ERR_BAD_PARAM, made->what = MCA_PML_UMRDDT_INFO_LAYOUT); /* with an export */
    WRONG(OMPI_ERR_BAD_PARAM, ++made->export.buffer_id);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = 0);
    WRONG(OMPI_ERR_BAD_PARAM, ++made->flat_bytes);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = UINT32_MAX);
    WRONG(OMPI_ERR_BAD_PARAM, made->flat_bytes = MCA_PML_UMRDDT_MAX_INFO_FLAT + 1);
    /* the layout of another message */
    WRONG(OMPI_ERR_BAD_PARAM, ++rts.length);
    WRONG(OMPI_ERR_BAD_PARAM, --rts.lb);
    WRONG(OMPI_ERR_BAD_PARAM, ++rts.pieces);
#undef WRONG
    packets_free(&packets);
}

/* Envelopes: the fields agree with the schemes. */
static void envelopes(void)
{
    mca_pml_umrddt_rts_t rts = rts_of(layouts[2]), none = {.schemes = MCA_PML_UMRDDT_BITS_HCA};

#define WRONG(valid, of, change)                             \
    do {                                                     \
        mca_pml_umrddt_rts_t was = of;                       \
        change;                                              \
        CHECK((valid) == mca_pml_umrddt_ipc_rts_valid(&of)); \
        of = was;                                            \
    } while (0)

    WRONG(true, rts, (void) 0);
    WRONG(true, rts, rts.buffer = 0); /* MPI_BOTTOM */
    WRONG(true, rts, rts.lb = 0);
    WRONG(true, rts, rts.schemes |= MCA_PML_UMRDDT_BIT_UMR);
    WRONG(false, rts, rts.buffer_id = 0);
    WRONG(false, rts, rts.layout = 0);
    WRONG(false, rts, rts.pieces = 0);
    WRONG(true, rts, rts.schemes |= MCA_PML_UMRDDT_DONE_FLAG);
    WRONG(false, rts, rts.schemes |= MCA_PML_UMRDDT_DONE_FLAG;
          rts.request_id = OPAL_UMRDDT_DONE_FLAGS);
    WRONG(false, rts, rts.schemes = MCA_PML_UMRDDT_DONE_FLAG);
    WRONG(true, rts, rts.schemes |= MCA_PML_UMRDDT_DONE_FLAG | MCA_PML_UMRDDT_BIT_DIRECT);
    WRONG(false, none, none.schemes |= MCA_PML_UMRDDT_DONE_FLAG);
    WRONG(true, none, (void) 0);
#undef WRONG
}

/* ---------------------------------------------------------------------------------------------
 * What is remembered
 * ------------------------------------------------------------------------------------------- */

static opal_iov_cache_layout_t *layout_of(const mca_pml_umrddt_peer_t *peer,
                                          const mca_pml_umrddt_rts_t *rts)
{
    return opal_umrddt_gpu_peer_layout(peer->gpu, rts->layout, rts->length, rts->lb, rts->pieces);
}

static void keep(mca_pml_umrddt_peer_t *peer, uint64_t id, opal_iov_cache_layout_t *layout)
{
    CHECK(mca_pml_umrddt_ipc_remember(peer));
    opal_umrddt_gpu_peer_keep(peer->gpu, id, layout, &mca_pml_umrddt.counters.ipc_layout_bytes_now,
                              mca_pml_umrddt.params.layout_cache_size);
}

/* Random uses of more layouts than there are places for, against a list in the order of use. */
static void cached(unsigned slots, unsigned seed)
{
    mca_pml_umrddt_peer_t peer;
    uint64_t order[8] = {0}; /* ids, the last used first; 0: none */
    uint64_t bytes = 0;
    unsigned hits = 0;

    memset(&peer, 0, sizeof(peer));
    mca_pml_umrddt.params.direct_layouts = slots;
    mca_pml_umrddt.params.layout_cache_size = SIZE_MAX;
    for (int i = 0; i < 2000; ++i) {
        int which = rand_r(&seed) % LAYOUTS;
        mca_pml_umrddt_rts_t rts = rts_of(layouts[which]);
        opal_iov_cache_layout_t *found = layout_of(&peer, &rts);
        unsigned at = 0;

        while (at < slots && rts.layout != order[at]) {
            ++at;
        }
        CHECK((at < slots) == (NULL != found));
        if (NULL != found) {
            CHECK(found == layouts[which]);
            OBJ_RELEASE(found);
            ++hits;
            /* an envelope with contradicting data is refused */
            ++rts.lb;
            CHECK(NULL == layout_of(&peer, &rts));
            --rts.lb;
            ++rts.length;
            CHECK(NULL == layout_of(&peer, &rts));
        } else {
            keep(&peer, rts.layout, layouts[which]);
            at = 0 < slots ? slots - 1 : 0;
        }
        for (; 0 < at; --at) {
            order[at] = order[at - 1];
        }
        order[0] = 0 < slots ? rts.layout : 0;
    }
    CHECK((0 < slots) == (0 < hits));
    CHECK((0 < slots) == (0 < mca_pml_umrddt.counters.ipc_layout_bytes_now));
    CHECK(NULL == mca_pml_umrddt_ipc_check(&peer, &bytes)
          && mca_pml_umrddt.counters.ipc_layout_bytes_now == bytes);
    if (0 < bytes) {
        const char *wrong;

        mca_pml_umrddt.params.layout_cache_size = bytes - 1;
        wrong = mca_pml_umrddt_ipc_check(&peer, &bytes);
        CHECK(NULL != wrong && 0 == strcmp("layouts of senders: no more bytes than may be", wrong));
    }
    mca_pml_umrddt_ipc_free(&peer);
    CHECK(0 == mca_pml_umrddt.counters.ipc_layout_bytes_now);
}

/* The bound in bytes holds over all peers. */
static void bounded(unsigned seed)
{
    uint64_t largest = opal_iov_cache_form_bytes(layouts[4]->form);
    mca_pml_umrddt_peer_t peers[2];
    unsigned found = 0;

    memset(peers, 0, sizeof(peers));
    mca_pml_umrddt.params.direct_layouts = 6;
    mca_pml_umrddt.params.layout_cache_size = (size_t) largest + 1000;
    for (int i = 0; i < 3000; ++i) {
        mca_pml_umrddt_peer_t *peer = &peers[rand_r(&seed) % 2];
        int which = rand_r(&seed) % LAYOUTS;
        mca_pml_umrddt_rts_t rts = rts_of(layouts[which]);
        opal_iov_cache_layout_t *layout = layout_of(peer, &rts);

        if (NULL != layout) {
            OBJ_RELEASE(layout);
            ++found;
        } else {
            keep(peer, rts.layout, layouts[which]);
        }
        CHECK(mca_pml_umrddt.counters.ipc_layout_bytes_now
              <= mca_pml_umrddt.params.layout_cache_size);
    }
    CHECK(0 < found);
    mca_pml_umrddt_ipc_free(&peers[0]);
    mca_pml_umrddt_ipc_free(&peers[1]);
    CHECK(0 == mca_pml_umrddt.counters.ipc_layout_bytes_now);
}

/* Engines and refusals. */
static void import_engines(void)
{
    static char somewhere[2];
    opal_umrddt_gpu_engine_t *one = (opal_umrddt_gpu_engine_t *) &somewhere[0];
    opal_umrddt_gpu_engine_t *two = (opal_umrddt_gpu_engine_t *) &somewhere[1];
    mca_pml_umrddt_peer_t peer;
    uint64_t id;

    memset(&peer, 0, sizeof(peer));
    CHECK(NULL == opal_umrddt_gpu_peer_home(peer.gpu, 7));
    CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, 7, NULL));
    CHECK(mca_pml_umrddt_ipc_remember(&peer));
    opal_umrddt_gpu_peer_mapped(peer.gpu, 7, one);
    CHECK(one == opal_umrddt_gpu_peer_home(peer.gpu, 7));
    CHECK(NULL == opal_umrddt_gpu_peer_home(peer.gpu, 7 + 64)); /* in the same entry */
    opal_umrddt_gpu_peer_mapped(peer.gpu, 7 + 64, two);
    CHECK(two == opal_umrddt_gpu_peer_home(peer.gpu, 7 + 64));
    CHECK(NULL == opal_umrddt_gpu_peer_home(peer.gpu, 7));
    opal_umrddt_gpu_peer_refused(peer.gpu, 8, one);
    CHECK(opal_umrddt_gpu_peer_is_refused(peer.gpu, 8, one));
    CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, 8, two));
    CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, 8, NULL));
    CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, 9, one));
    opal_umrddt_gpu_peer_mapped(peer.gpu, 8, one);
    CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, 8, one));
    /* as often as it likes: something could be mapped */
    for (id = 100; id < 300; ++id) {
        CHECK(!opal_umrddt_gpu_peer_is_refused(peer.gpu, id, NULL));
        opal_umrddt_gpu_peer_refused(peer.gpu, id, NULL);
        CHECK(opal_umrddt_gpu_peer_is_refused(peer.gpu, id, NULL));
    }
    mca_pml_umrddt_ipc_free(&peer);
    CHECK(NULL == peer.gpu);
    CHECK(mca_pml_umrddt_ipc_remember(&peer));

    /* of a peer of which nothing ever could be, a few are tried */
    for (id = 100; id < 300 && !opal_umrddt_gpu_peer_is_refused(peer.gpu, id, NULL); ++id) {
        opal_umrddt_gpu_peer_refused(peer.gpu, id, NULL);
    }
    CHECK(102 < id && 110 > id);
    mca_pml_umrddt_ipc_free(&peer);
}

/* A completion flag can be mapped only with the right number and cookie; each set of it is seen
 * once. */
static void done_flags(void)
{
    static const uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN] = {1, 2, 3}, other[16] = {1, 2, 4};
    opal_umrddt_done_flags_t *mapped;
    uint32_t pid, fd;
    FILE *file = tmpfile();

    opal_umrddt_done_flags_report(cookie, &pid, &fd);
    CHECK(0 != pid && NULL != opal_umrddt_own_done_flags);
    CHECK(NULL == opal_umrddt_done_flags_map(pid, fd, other));
    CHECK(NULL == opal_umrddt_done_flags_map(0, fd, cookie));
    CHECK(NULL == opal_umrddt_done_flags_map(pid, fd + 1000, cookie));
    for (uint32_t standard = 0; standard < 3; ++standard) {
        CHECK(NULL == opal_umrddt_done_flags_map(pid, standard, cookie));
    }
    /* as long, but another process could truncate it */
    CHECK(NULL != file && 0 == ftruncate(fileno(file), sizeof(opal_umrddt_done_flags_t)));
    CHECK(sizeof(cookie) == pwrite(fileno(file), cookie, sizeof(cookie), 0));
    CHECK(NULL == opal_umrddt_done_flags_map(pid, (uint32_t) fileno(file), cookie));
    fclose(file);

    mapped = opal_umrddt_done_flags_map(pid, fd, cookie);
    CHECK(NULL != mapped && mapped != opal_umrddt_own_done_flags);
    for (uint32_t request_id = 0; request_id < OPAL_UMRDDT_DONE_FLAGS; request_id += 93) {
        CHECK(OPAL_UMRDDT_DONE_FLAG_CLEAR == opal_umrddt_done_flag_test(request_id, 40));
        opal_umrddt_done_flag_set(mapped, request_id, 40, OPAL_UMRDDT_DONE_FLAG_DONE);
        CHECK(OPAL_UMRDDT_DONE_FLAG_DONE == opal_umrddt_done_flag_test(request_id, 40));
        CHECK(OPAL_UMRDDT_DONE_FLAG_CLEAR == opal_umrddt_done_flag_test(request_id, 41));
        CHECK(OPAL_UMRDDT_DONE_FLAG_CLEAR == opal_umrddt_done_flag_test(request_id + 1, 40));
        opal_umrddt_done_flag_set(mapped, request_id, 41, OPAL_UMRDDT_DONE_FLAG_REPLY);
        CHECK(OPAL_UMRDDT_DONE_FLAG_REPLY == opal_umrddt_done_flag_test(request_id, 41));
        mapped->done_flags[request_id].word = 42u << 2 | 3; /* nothing that there is */
        CHECK(OPAL_UMRDDT_DONE_FLAG_CLEAR == opal_umrddt_done_flag_test(request_id, 42));
        mapped->done_flags[request_id].word = UINT64_MAX;
        CHECK(OPAL_UMRDDT_DONE_FLAG_CLEAR == opal_umrddt_done_flag_test(request_id, 42));
    }
    opal_umrddt_done_flags_unmap(mapped);

    opal_umrddt_done_flags_close();
    CHECK(NULL == opal_umrddt_own_done_flags);
}

int main(void)
{
    /* of one piece; of a few; and of so many that they need one part, and several */
    static const size_t pieces[LAYOUTS] = {1, 3, 12, 700, 9000, 17000, 60000};
    unsigned seed = 4711;

    for (int i = 0; i < LAYOUTS; ++i) {
        layouts[i] = layout_new(pieces[i], &seed);
    }
    CHECK(MCA_PML_UMRDDT_INFO_ROOM * 3
          < opal_iov_cache_form_flatten(layouts[LAYOUTS - 1]->form, NULL, 0));
    exchanges();
    garble(0, MCA_PML_UMRDDT_INFO_EXPORT, 1);
    garble(1, MCA_PML_UMRDDT_INFO_ALL, 2);
    garble(2, MCA_PML_UMRDDT_INFO_LAYOUT, 3);
    garble(3, MCA_PML_UMRDDT_INFO_ALL, 4);
    garble(5, MCA_PML_UMRDDT_INFO_ALL, 5);
    fields();
    envelopes();
    for (unsigned slots = 0; slots < 7; ++slots) {
        cached(slots, 100 + slots);
    }
    bounded(31);
    import_engines();
    done_flags();
    for (int i = 0; i < LAYOUTS; ++i) {
        OBJ_RELEASE(layouts[i]);
    }
    printf("%lu checks\n", checks);
    return 0;
}
