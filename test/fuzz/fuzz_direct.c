/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Writes without mkeys: the layout, the address and the regions are a peer's. Whatever they say,
 * every write that is posted lies in one of the regions, with that region's key, and gathers only
 * what is in this process's registered memory; together they are as long as the message.
 *
 * Compiled with the file under test, of which the queue pair and the pool of puts are played.
 */

#include "btl_umr_put_sgl.c"

#include "fuzz.h"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params = {.plain_keys = true, .notify_size = 500};

/* Pieces of this process's layouts. */
#define OWN 3

static struct {
    opal_iov_cache_layout_t *layout[OWN];
    mca_btl_umr_memory_t memory;
    mca_btl_umr_part_t parts[2];
    struct ibv_mr mrs[2];
    mca_btl_umr_direct_t direct;
    mca_btl_umr_key_t regions[128];
    uint64_t start; /* of the write that is being built */
    uint32_t rkey;
    uint64_t written;
    uint32_t writes;
    uint32_t fins; /* of a put */
    bool put;
} play;

const struct ibv_mr *mca_btl_umr_memory_find(const mca_btl_umr_memory_t *memory, uintptr_t address)
{
    for (size_t i = 0; i < memory->count; ++i) {
        if (address >= memory->parts[i].start && address < memory->parts[i].end) {
            return &play.mrs[i];
        }
    }
    FUZZ_CHECK(!"of this process's memory only what is registered");
    return NULL;
}

static void write_begins(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
    (void) qp;
    play.rkey = rkey;
    play.start = addr;
    ++play.writes;
}

static void write_imm_begins(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 fin)
{
    (void) fin;
    ++play.fins;
    write_begins(qp, rkey, addr);
}

/* After a write of notify_size and more. */
uint64_t mca_btl_umr_put_notify(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put)
{
    (void) endpoint;
    ++play.fins;
    put->left = 0;
    return 0;
}

static void write_gathers(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *pieces)
{
    uint64_t length = 0;
    bool in = false;

    (void) qp;
    FUZZ_CHECK(0 < count && count <= 4);
    for (size_t i = 0; i < count; ++i) {
        const mca_btl_umr_part_t *part = &play.parts[pieces[i].lkey - 1];

        FUZZ_CHECK(pieces[i].addr >= part->start && pieces[i].addr < part->end
                   && pieces[i].length <= part->end - pieces[i].addr && 0 < pieces[i].length);
        length += pieces[i].length;
    }
    for (size_t i = 0; i < play.direct.region_count; ++i) {
        const mca_btl_umr_key_t *region = &play.direct.regions[i];

        in = in
             || (region->rkey == play.rkey && play.start >= region->addr && length <= region->length
                 && play.start - region->addr <= region->length - length);
    }
    FUZZ_CHECK(in);
    play.written += length;
}

static struct ibv_qp_ex queue = {
    .wr_rdma_write = write_begins,
    .wr_rdma_write_imm = write_imm_begins,
    .wr_set_sge_list = write_gathers,
};

mca_btl_umr_put_t *mca_btl_umr_put_new(mca_btl_umr_hca_t *hca, const mca_btl_umr_key_t *remote,
                                       size_t remote_count)
{
    mca_btl_umr_put_t *put = calloc(1, sizeof(*put));

    (void) hca;
    FUZZ_CHECK(NULL != put);
    put->remote = malloc(remote_count * sizeof(*remote));
    FUZZ_CHECK(NULL != put->remote);
    memcpy(put->remote, remote, remote_count * sizeof(*remote));
    return put;
}

/* All of it at once. */
void mca_btl_umr_put_begin(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                           uint64_t length, const uint32_t *fin, mca_btl_umr_done_fn_t done,
                           void *context)
{
    (void) done;
    (void) context;
    put->left = length;
    put->has_fin = true;
    put->fin = *fin;
    while (0 < put->left) {
        uint64_t before = put->left;

        FUZZ_CHECK((0 < put->build(endpoint, put) || 1 == play.fins) && put->left < before);
        endpoint->sq.done = endpoint->sq.posted;
    }
    FUZZ_CHECK(length == play.written && 1 == play.fins);
    play.put = true;
    free(put->walk);
    free(put->remote);
    free(put);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    opal_iov_cache_iov_t irregular[40], regular[64];
    opal_iov_cache_iov_t one = {0, 3000};
    opal_iov_cache_form_t *form;

    (void) argc;
    (void) argv;
    for (int i = 0; i < 40; ++i) {
        irregular[i] = (opal_iov_cache_iov_t){i * 100 + i % 7, (uint64_t) (1 + i * 13 % 90)};
    }
    for (int i = 0; i < 64; ++i) {
        regular[i] = (opal_iov_cache_iov_t){i * 64, 24};
    }
    FUZZ_CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(&one, 1, &form)
               && OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &play.layout[0]));
    FUZZ_CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(regular, 64, &form)
               && OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &play.layout[1]));
    FUZZ_CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(irregular, 40, &form)
               && OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &play.layout[2]));
    play.mrs[0].lkey = 1;
    play.mrs[1].lkey = 2;
    return 0;
}

/* What it reads: which layout, how large a write may be, the regions, the address, the flattened
 * layout of the peer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mca_btl_umr_hca_t hca;
    static mca_btl_umr_endpoint_t endpoint;
    const uintptr_t buffer = (uintptr_t) 1 << 32;
    fuzz_bytes_t input = {data, size};
    opal_iov_cache_layout_t *mine = play.layout[fuzz_below(&input, OWN)];
    uint8_t flags = fuzz_byte(&input);
    uint32_t fin = 1;
    uint64_t at = fuzz_number(&input, 0 != (flags & 1) ? 8 : 3);
    opal_iov_cache_form_t *to;
    int rc;

    endpoint.hca = &hca;
    endpoint.connected = true;
    endpoint.sq = (mca_btl_umr_sq_t){.depth = 1000, .qpx = &queue};
    hca.device.max_message = 0 != (flags & 2) ? 1u << 30 : 1u + fuzz_byte(&input);
    hca.caps.write_pieces = 1 + fuzz_below(&input, 4);
    play.memory = (mca_btl_umr_memory_t){.hca = &hca,
                                         .buffer = (void *) buffer,
                                         .layout_id = mine->id,
                                         .size = mine->size,
                                         .count = 0 != (flags & 4) ? 2 : 1,
                                         .parts = play.parts};
    play.parts[0].start = buffer + (uint64_t) mine->lb;
    play.parts[0].end = buffer + (uint64_t) mine->ub;
    if (2 == play.memory.count) {
        /* between two pieces */
        uint64_t half = opal_iov_cache_layout_start(mine, mine->iov_count / 2);

        play.parts[1] = play.parts[0];
        play.parts[1].start = buffer + (uint64_t) opal_iov_cache_form_offset(mine->form, half);
        play.parts[0].end = play.parts[1].start;
        play.memory.count = play.parts[0].end > play.parts[0].start ? 2 : 1;
        play.parts[0].end = 2 == play.memory.count ? play.parts[0].end : play.parts[1].end;
    }
    play.direct = (mca_btl_umr_direct_t){.buffer = (void *) buffer,
                                         .layout = mine,
                                         .memory = &play.memory,
                                         .to_buffer = fuzz_number(&input, 0 != (flags & 8) ? 8 : 3),
                                         .regions = play.regions,
                                         .region_count = 1 + fuzz_below(&input, 128),
                                         .start = fuzz_below(&input, 256),
                                         .end = fuzz_number(&input, 2)};
    for (size_t i = 0; i < play.direct.region_count; ++i) {
        play.regions[i] = (mca_btl_umr_key_t){
            .addr = at, .length = 1 + fuzz_number(&input, 2), .rkey = (uint32_t) (100 + i)};
        at += play.regions[i].length + fuzz_byte(&input);
    }
    fuzz_patch(&input, play.regions, play.direct.region_count * sizeof(play.regions[0]));
    play.written = 0;
    play.writes = 0;
    play.fins = 0;
    play.put = false;
    if (OPAL_SUCCESS != opal_iov_cache_form_unflatten(input.at, input.left, &to)) {
        return 0;
    }
    play.direct.to = to;
    rc = mca_btl_umr_put_direct(&endpoint, &play.direct, &fin, NULL, NULL);
    FUZZ_CHECK((OPAL_SUCCESS == rc) == play.put
               && (OPAL_SUCCESS == rc || OPAL_ERR_BAD_PARAM == rc));
    FUZZ_CHECK(play.put || 0 == play.writes);
    opal_iov_cache_form_free(to);
    return 0;
}
