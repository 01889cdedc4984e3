/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The selection for pairs of layouts: the number of uses from which keys pay; only uses change a
 * selection; a scheme that failed is avoided for a while; a message may outlive the cache entry of
 * its pair.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/check.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

static const char path[] = "test_selection.tmp";
static opal_proc_t proc;
static mca_pml_umrddt_peer_t peer, other;
static mca_pml_umrddt_comm_t comm = {.scheme = MCA_PML_UMRDDT_SCHEME_AUTO};
static mca_btl_umr_hca_ops_t hca;
static opal_iov_cache_layout_t *layout;
static double clock_us = 1000;
static unsigned lookups; /* of layouts */

/* ---------------------------------------------------------------------------------------------
 * Functions that the selection calls
 * ------------------------------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void) clock;
    time->tv_sec = (time_t) (clock_us / 1e6);
    time->tv_nsec = (long) (1e3 * (clock_us - 1e6 * (double) time->tv_sec));
    return 0;
}

bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *to, const opal_umrddt_gpu_where_t *where)
{
    (void) where;
    return to->has_hca;
}

int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count, opal_iov_cache_layout_t **found)
{
    (void) datatype;
    (void) count;
    ++lookups;
    OBJ_RETAIN(layout);
    *found = layout;
    return OMPI_SUCCESS;
}

mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *of)
{
    (void) of;
    return MCA_PML_UMRDDT_PATTERN_NONE;
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

/* Figures, one a line. */
static void tuning(const char *lines)
{
    FILE *file = fopen(path, "w");

    CHECK(NULL != file);
    CHECK(0 < fprintf(file,
                      "umrddt-model 2\nhardware any\nnear_latency 0.001\nnear_rate 1000000\n"
                      "hca_rate 1000000000\nkey_entry 0.001\nregister_base 0.001\n"
                      "register_mib 0.001\n%s",
                      lines));
    CHECK(0 == fclose(file));
    mca_pml_umrddt_select_close();
    mca_pml_umrddt_select_open(false);
    CHECK(mca_pml_umrddt.declines);
    memset(peer.states, 0, sizeof(peer.states));
}

/* A layout of so many pieces of 100 bytes, or a few more and fewer by turns. */
static void lay_of(size_t pieces, uint64_t more)
{
    opal_iov_cache_iov_t iovs[64];
    opal_iov_cache_form_t *form = NULL;

    for (size_t i = 0; i < pieces; ++i) {
        iovs[i].offset = (int64_t) (200 * i);
        iovs[i].length = 0 == i % 2 ? 100 - more : 100 + more;
    }
    if (NULL != layout) {
        OBJ_RELEASE(layout);
        ++mca_pml_umrddt.types_died;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(iovs, pieces, &form));
    CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
}

static void lay(size_t pieces)
{
    lay_of(pieces, 0);
}

/* A message of @p pieces at its sender, to the CPU's memory, as it is when it has been matched. */
static void matched(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_peer_t *from, void *buffer,
                    uint32_t pieces, unsigned schemes)
{
    memset(recv, 0, sizeof(*recv));
    recv->buf = buffer;
    recv->comm = &comm;
    recv->peer = from;
    recv->rts.pieces = pieces;
    recv->rts.write_pieces = 1;
    recv->rts.schemes = (uint16_t) schemes;
    recv->rts.length = recv->total = layout->size;
    recv->where.memory.kind = OPAL_UMRDDT_GPU_HOST;
}

/* Returns true if the model selected a packed scheme. */
static bool packs(const mca_pml_umrddt_recv_t *recv)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(recv->scheme));
}

static bool permits(void *recv, mca_pml_umrddt_scheme_id_t scheme)
{
    CHECK(0 != (MCA_PML_UMRDDT_BIT(scheme) & ((mca_pml_umrddt_recv_t *) recv)->candidates));
    return true;
}

/* A message has been matched: the selected scheme. */
static mca_pml_umrddt_scheme_id_t select_for(mca_pml_umrddt_recv_t *recv,
                                             mca_pml_umrddt_peer_t *from, void *buffer)
{
    mca_pml_umrddt_scheme_id_t scheme;

    matched(recv, from, buffer, 1, MCA_PML_UMRDDT_BITS_HCA);
    mca_pml_umrddt_select_recv(recv);
    CHECK(NULL != recv->pair);
    CHECK(!packs(recv));
    recv->candidates = recv->rts.schemes & mca_pml_umrddt.schemes;
    scheme = opal_umrddt_select_next(&recv->candidates, (uint16_t) MCA_PML_UMRDDT_BIT(recv->scheme),
                                     permits, recv);
    CHECK((int) scheme == recv->scheme);
    CHECK(0 == (MCA_PML_UMRDDT_BIT(scheme) & recv->candidates));
    return (mca_pml_umrddt_scheme_id_t) recv->scheme;
}

/* A whole message with these times with keys, and without. @return its scheme */
static mca_pml_umrddt_scheme_id_t message(void *buffer, double umr, double direct)
{
    mca_pml_umrddt_recv_t recv;
    mca_pml_umrddt_scheme_id_t scheme_id = select_for(&recv, &peer, buffer);

    clock_us += MCA_PML_UMRDDT_SCHEME_UMR == scheme_id ? umr : direct;
    mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
    CHECK(NULL == recv.pair);
    OBJ_RELEASE(recv.layout);
    return scheme_id;
}

static unsigned umr_of(void *buffer, unsigned times, double umr, double direct)
{
    unsigned count = 0;

    for (unsigned i = 0; i < times; ++i) {
        count += MCA_PML_UMRDDT_SCHEME_UMR == message(buffer, umr, direct) ? 1 : 0;
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------- */

static char buffers[10000];

/* Keys of 40 us, or 11 writes of one: after four messages 40 us are 10 a message. */
static void uses(void)
{
    lay(10);
    tuning("hca_latency 0.001\nhca_write 1\nhca_entry 0.001\nkey_map 20\n");
    for (int i = 0; i < 4; ++i) {
        CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == message(buffers, 1, 11));
    }
    for (int i = 0; i < 1000; ++i) {
        CHECK(MCA_PML_UMRDDT_SCHEME_UMR == message(buffers, 1e6, 1)); /* whatever its time */
    }
    /* another buffer has keys of its own */
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == message(buffers + 1, 1, 11));
    /* the user's assertion about reuse takes effect immediately */
    mca_pml_umrddt.params.reuse = 4;
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == message(buffers + 2, 1, 11));
    mca_pml_umrddt.params.reuse = 3;
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == message(buffers + 3, 1, 11));
    mca_pml_umrddt.params.reuse = 1;
}

/* Predicted: 10 us by keys, 13 without. */
static const char ten[] = "hca_latency 5\nhca_entry 1\nhca_write 1.6\nkey_map 0.001\n";

/* Measured times of messages change no selection. */
static void observed(void)
{
    lay(4);
    tuning(ten);
    CHECK(1000 == umr_of(buffers, 1000, 1e9, 13));
}

/* Messages that may be declined. @return how many of 1000 say that the next ones need not be
 * offered
 */
static unsigned unasked(opal_umrddt_gpu_kind_t kind)
{
    mca_pml_umrddt_recv_t recv;
    unsigned count = 0;

    for (int i = 0; i < 1000; ++i) {
        matched(&recv, &peer, buffers, 1, MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_MAY_DECLINE);
        recv.where.memory.kind = kind;
        mca_pml_umrddt_select_recv(&recv);
        CHECK((MCA_PML_UMRDDT_SCHEME_BASE == recv.scheme) == mca_pml_umrddt_select_declines(&recv));
        count += mca_pml_umrddt_select_declines(&recv) && recv.converged;
        mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
        OBJ_RELEASE(recv.layout);
    }
    return count;
}

/* What is predicted to be quickest by the base PML is declined at once, for the next messages too;
 * but not a long one into GPU memory, and nothing that mkeys will pay for. */
static void left_alone(void)
{
    mca_pml_umrddt_recv_t recv;

    lay(4);
    tuning("hca_latency 10\n");
    CHECK(1000 == unasked(OPAL_UMRDDT_GPU_HOST));
    tuning("hca_latency 100\nnear_latency 1\n");
    CHECK(1000 == unasked(OPAL_UMRDDT_GPU_DEVICE));
    tuning("hca_latency 100\nnear_latency 0.1\n");
    CHECK(0 == unasked(OPAL_UMRDDT_GPU_DEVICE));
    tuning("near_rate 40\nhca_latency 1\nkey_map 2000\nhca_write 100\n");
    matched(&recv, &peer, buffers, 1, MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_MAY_DECLINE);
    mca_pml_umrddt_select_recv(&recv);
    CHECK(!mca_pml_umrddt_select_declines(&recv));
    mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
    OBJ_RELEASE(recv.layout);
}

static void failed(void)
{
    mca_pml_umrddt_recv_t recv;

    lay(4);
    tuning(ten);
    CHECK(7 == umr_of(buffers, 7, 10, 13));
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == select_for(&recv, &peer, buffers));
    mca_pml_umrddt_select_failed(&recv);
    CHECK(NULL == recv.pair);
    OBJ_RELEASE(recv.layout);
    CHECK(0 == umr_of(buffers, 128, 10, 13));
    /* and for other pairs of this peer, but not for those of another one */
    CHECK(0 == umr_of(buffers + 1, 128, 10, 13));
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == select_for(&recv, &other, buffers));
    mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
    OBJ_RELEASE(recv.layout);
    /* it is used again */
    CHECK(100 == umr_of(buffers, 100, 10, 13));
    CHECK(100 == umr_of(buffers + 1, 100, 10, 13));
}

/* 1000 bytes by the base PML: 1 us below its eager limit to this peer, and 3 us above; by mkeys 2.
 */
static void eager(void)
{
    static const opal_umrddt_gpu_where_t host = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}};

    for (int near = 0; near < 2; ++near) {
        for (int above = 0; above < 2; ++above) {
            proc.proc_flags = 0 == near ? 0 : OPAL_PROC_ON_NODE;
            mca_pml_umrddt.eager[near] = 1000 - (size_t) above;
            tuning("near_latency 1\nfar_latency 1\nfar_rate 1000000\nhca_latency 0.001\n"
                   "hca_entry 0.001\nkey_map 0.001\n"
                   "cpu_copy 1000000 1000000 1000000 1000000 1000000 1000000\n");
            lay(10);
            CHECK((0 == above)
                  == mca_pml_umrddt_select_passes(&comm, &peer, &host, false, 1, NULL));
        }
        mca_pml_umrddt.eager[near] = OPAL_UMRDDT_SELECT_EAGER;
    }
}

/* If only one scheme is offered there is no selection; an overflow of the table evicts entries and
 * has no other effect. */
static void bounds(void)
{
    mca_pml_umrddt_recv_t first, recv;

    lay(4);
    tuning(ten);
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == select_for(&first, &peer, buffers));
    for (size_t i = 0; i < sizeof(buffers); ++i) {
        CHECK(MCA_PML_UMRDDT_SCHEME_UMR == message(buffers + i, 10, 13));
    }
    mca_pml_umrddt_select_ended(&first, MPI_SUCCESS);
    CHECK(NULL == first.pair);
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == select_for(&recv, &peer, buffers));
    mca_pml_umrddt_select_ended(&recv, MPI_ERR_OTHER);
    CHECK(NULL == recv.pair);
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BIT_DIRECT;
    tuning(ten);
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == message(buffers, 10, 13));
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
}

/* A message that is passed through is recognized by its datatype: no layout lookup, for this peer,
 * this count, the pattern of this communicator, and until a datatype is freed. */
static void remembered(const opal_umrddt_gpu_where_t *where)
{
    const opal_umrddt_gpu_where_t gpu = {
        .memory = {.kind = OPAL_UMRDDT_GPU_DEVICE, .legacy_ipc = true, .buffer_id = 7}};
    const unsigned before = lookups;

    for (int i = 0; i < 100; ++i) {
        CHECK(mca_pml_umrddt_select_passes(&comm, &peer, where, false, 1, NULL));
    }
    CHECK(before == lookups);
    (void) mca_pml_umrddt_select_passes(&comm, &peer, where, false, 2, NULL);
    CHECK(before + 1 == lookups);
    (void) mca_pml_umrddt_select_passes(&comm, &other, where, false, 1, NULL);
    CHECK(before + 2 == lookups);
    (void) mca_pml_umrddt_select_passes(&comm, &peer, where, true, 1, NULL);
    CHECK(before + 3 == lookups);
    comm.pattern = MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU;
    (void) mca_pml_umrddt_select_passes(&comm, &peer, where, false, 1, NULL);
    CHECK(before + 4 == lookups);
    comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    (void) mca_pml_umrddt_select_passes(&comm, &peer, &gpu, false, 1, NULL);
    CHECK(before + 5 == lookups);
    ++mca_pml_umrddt.types_died;
    CHECK(mca_pml_umrddt_select_passes(&comm, &peer, where, false, 1, NULL));
    CHECK(before + 6 == lookups);
}

/* A sender: worked out once, for each kind of peer. */
static void declined(void)
{
    opal_umrddt_gpu_where_t where = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}};

    lay(4);
    tuning("near_rate 1000000\nfar_rate 1\n");
    CHECK(mca_pml_umrddt.declines);
    CHECK(mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
    proc.proc_flags = 0; /* another peer */
    CHECK(!mca_pml_umrddt_select_passes(&comm, &other, &where, false, 1, NULL));
    proc.proc_flags = OPAL_PROC_ON_NODE;
    CHECK(mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
    /* where the user has named a scheme there is no choice */
    comm.scheme = MCA_PML_UMRDDT_SCHEME_UMR;
    CHECK(!mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
    comm.scheme = MCA_PML_UMRDDT_SCHEME_AUTO;
    remembered(&where);
    tuning("near_rate 0.0001\n");
    CHECK(!mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
}

/* An HCA, where there is one, and the user does not rule it out: where it may be quicker. It is to
 * memory of the CPU; to that of a GPU as is @p wanted. */
static void by_hca(bool wanted)
{
    const mca_btl_umr_hca_ops_t *before = mca_pml_umrddt.hca;
    bool had_hca = peer.has_hca;
    int i;

    mca_pml_umrddt.hca = NULL;
    peer.has_hca = true;
    CHECK(!mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    mca_pml_umrddt.hca = &hca;
    peer.has_hca = false;
    CHECK(!mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    peer.has_hca = true;
    comm.schemes = MCA_PML_UMRDDT_BITS_ALL & ~MCA_PML_UMRDDT_BITS_HCA;
    CHECK(!mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    comm.schemes = MCA_PML_UMRDDT_BITS_ALL;
    for (i = 0; i < 2; ++i) {
        CHECK(mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    }
    comm.pattern = MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU;
    for (i = 0; i < 2; ++i) {
        CHECK(wanted
              == mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    }
    comm.pattern = MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU;
    CHECK(mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    mca_pml_umrddt.hca = before;
    peer.has_hca = had_hca;
}

/* An HCA that is slow at scattering into GPUs: quicker than CUDA IPC for who receives in one piece.
 */
static void by_hca_for_one_piece(void)
{
    const mca_btl_umr_hca_ops_t *before = mca_pml_umrddt.hca;
    const bool had_hca = peer.has_hca;

    mca_pml_umrddt.hca = &hca;
    peer.has_hca = true;
    comm.pattern = MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU;
    for (int slow = 0; slow < 2; ++slow) {
        /* one piece 11 us and 4 (1 or 6 each), against 20; 4 pieces more than that in any case */
        tuning(
            0 == slow
                ? "ipc_latency 20\nhca_latency 5\ngpu_flush 0.001\nkey_map 0.001\nhca_write 100\n"
                  "hca_gpu_gather 1\nhca_gpu_scatter 6\n"
                : "ipc_latency 20\nhca_latency 5\ngpu_flush 0.001\nkey_map 0.001\nhca_write 100\n"
                  "hca_gpu_gather 1\nhca_gpu_scatter 20\n");
        lay(4);
        CHECK((0 == slow)
              == mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_HCA));
    }
    comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    mca_pml_umrddt.hca = before;
    peer.has_hca = had_hca;
}

/* The receiver selects between CUDA IPC and the HCA. Data of one of them in the envelope is not
 * mistaken for the other's endpoints. */
static void beside_ipc(mca_pml_umrddt_recv_t *recv, bool wanted)
{
    const opal_umrddt_selected_t *pair;
    const mca_btl_umr_hca_ops_t *before = mca_pml_umrddt.hca;
    const bool had_hca = peer.has_hca;

    mca_pml_umrddt.hca = &hca;
    peer.has_hca = true;
    recv->layout = NULL;
    recv->rts.schemes = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BIT_UMR;
    recv->rts.buffer_id = recv->rts.buffer = recv->rts.layout = 7;
    recv->rts.lb = -7;
    mca_pml_umrddt_select_recv(recv);
    CHECK(NULL != recv->pair);
    pair = recv->pair;
    CHECK((wanted ? MCA_PML_UMRDDT_SCHEME_UMR : MCA_PML_UMRDDT_SCHEME_IPC) == recv->scheme);
    CHECK(wanted == mca_pml_umrddt_rts_is_plain(&recv->rts));
    CHECK(!wanted == mca_pml_umrddt_ipc_can_recv(recv));
    mca_pml_umrddt_select_ended(recv, MPI_SUCCESS);
    OBJ_RELEASE(recv->layout);
    /* at the completion flag it is the same message */
    recv->layout = NULL;
    recv->rts.schemes = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BIT_UMR | MCA_PML_UMRDDT_DONE_FLAG;
    mca_pml_umrddt_select_recv(recv);
    CHECK(pair == recv->pair);
    mca_pml_umrddt_select_ended(recv, MPI_SUCCESS);
    OBJ_RELEASE(recv->layout);
    mca_pml_umrddt.hca = before;
    peer.has_hca = had_hca;
}

/* Between GPUs of a node the time of each copy decides, at the sender and at the receiver. */
static void between_gpus(void)
{
    opal_umrddt_gpu_where_t where = {
        .memory = {.kind = OPAL_UMRDDT_GPU_DEVICE, .legacy_ipc = true, .buffer_id = 7}};
    const char *const latency[] = {"ipc_latency 1\n", "ipc_latency 1000\n"};

    peer.same_host = peer.has_gpu = true;
    for (int slow = 0; slow < 2; ++slow) {
        mca_pml_umrddt_recv_t recv;
        char lines[200];

        (void) snprintf(lines, sizeof(lines), "near_rate 1000000\n%s", latency[slow]);
        tuning(lines);
        lay(4);
        comm.schemes = MCA_PML_UMRDDT_BIT_IPC;
        /* into memory of the CPU it is quick in any case, so that the user has to say that it goes
         * to a GPU */
        CHECK(!mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
        comm.pattern = MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU;
        CHECK((1 == slow) == mca_pml_umrddt_select_passes(&comm, &peer, &where, false, 1, NULL));
        comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
        /* nor does a peer with a completion flag make a slow scheme the only one */
        lay(4);
        comm.schemes = MCA_PML_UMRDDT_BITS_ALL;
        CHECK((1 == slow)
              == mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_PACK));
        CHECK((1 == slow)
              == mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_PACK));
        comm.schemes = MCA_PML_UMRDDT_BIT_IPC;
        CHECK(!mca_pml_umrddt_select_beats_copy(&comm, &peer, layout, MCA_PML_UMRDDT_BITS_PACK));
        comm.schemes = MCA_PML_UMRDDT_BITS_ALL;
        by_hca(1 == slow);
        matched(&recv, &peer, buffers, 4,
                MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BIT_PACK_STAGED | MCA_PML_UMRDDT_ON_GPU);
        recv.where = where;
        mca_pml_umrddt_select_recv(&recv);
        CHECK(NULL != recv.pair);
        CHECK((1 == slow) == packs(&recv));
        CHECK((0 == slow) == (0 != (MCA_PML_UMRDDT_BIT_IPC & recv.rts.schemes)));
        mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
        OBJ_RELEASE(recv.layout);
        beside_ipc(&recv, 1 == slow);
    }
}

/* Kernels use a lookup for layouts that are not vectors: the receiver's layout decides, and the
 * sender's if it has as many pieces. */
static void listed(void)
{
    double times[MCA_PML_UMRDDT_SCHEMES];

    tuning(
        "ipc_latency 0.001\nipc_copy 1000 1000 1000 1000 1000 1000\ngpu_pack_host 1000 1000 1000 1000 1000 1000\n"
        "gpu_list 1 1 1 1 1 1\n");
    for (uint64_t more = 0; more < 8; more += 4) {
        for (unsigned how = 0; how < 4; ++how) {
            const bool list = 0 < more, to_gpu = 0 != (how & 1), alike = 0 != (how & 2);
            mca_pml_umrddt_recv_t recv;

            lay_of(40, more);
            CHECK(list == opal_umrddt_gpu_listed(layout));
            memset(&recv, 0, sizeof(recv));
            recv.buf = buffers;
            recv.comm = &comm;
            recv.peer = &peer;
            recv.rts.pieces = alike ? 40 : 41;
            recv.rts.write_pieces = 1;
            recv.rts.schemes = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_ON_GPU;
            recv.rts.length = recv.total = layout->size;
            recv.where.memory.kind = to_gpu ? OPAL_UMRDDT_GPU_DEVICE : OPAL_UMRDDT_GPU_HOST;
            mca_pml_umrddt_select_recv(&recv);
            CHECK(NULL != recv.pair);
            memcpy(times, recv.pair->selection.times, sizeof(times));
            CHECK((list && (to_gpu || alike)) == (4000 < times[MCA_PML_UMRDDT_SCHEME_IPC]));
            mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
            OBJ_RELEASE(recv.layout);
        }
    }
    lay(1);
    CHECK(!opal_umrddt_gpu_listed(layout));
}

/* From system memory, without an HCA: only packing is possible, and only for a receive in GPU
 * memory; the tuning parameters, not the fixed rule, set the minimum size. */
static void to_gpu_only(void)
{
    static const opal_umrddt_gpu_where_t host = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}},
                                         gpu = {.memory = {.kind = OPAL_UMRDDT_GPU_DEVICE,
                                                           .legacy_ipc = true,
                                                           .buffer_id = 7}};
    /* GPUs are slow in reads of pinned memory, or in copies of one piece to them */
    const char *const slow[] = {"gpu_unpack_host 0.001 0.001 0.001 0.001 0.001 0.001\n"
                                "gpu_unpack 0.001 0.001 0.001 0.001 0.001 0.001\n",
                                "gpu_in_rate 0.001\n"
                                "gpu_unpack_host 1000 1000 1000 1000 1000 1000\n"};
    const uint16_t packs = MCA_PML_UMRDDT_BIT_PACK_STAGED | MCA_PML_UMRDDT_BIT_PACK_HOST;

    peer.has_gpu = true;
    peer.has_hca = false;
    mca_pml_umrddt.params.pack_min = 1 << 20;
    for (int i = 0; i < 2; ++i) {
        char lines[300];

        (void) snprintf(lines, sizeof(lines),
                        "%sgpu_launch 0.001\ngpu_out_latency 0.001\ngpu_in_latency 0.001\n",
                        slow[i]);
        tuning(lines);
        lay(6);
        CHECK(0 == mca_pml_umrddt_select_offered(&comm, &peer, &host, false, layout->size));
        CHECK(packs == mca_pml_umrddt_select_offered(&comm, &peer, &host, true, layout->size));
        CHECK(packs
              == (packs & mca_pml_umrddt_select_offered(&comm, &peer, &gpu, true, layout->size)));
        CHECK(mca_pml_umrddt_select_passes(&comm, &peer, &host, false, 1, NULL));
        CHECK((0 == i) == mca_pml_umrddt_select_passes(&comm, &peer, &host, true, 1, NULL));
        comm.pattern = MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU;
        CHECK((0 == i) == mca_pml_umrddt_select_passes(&comm, &peer, &host, false, 1, NULL));
        comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    }
    mca_pml_umrddt_select_close();
    CHECK(0 == mca_pml_umrddt_select_offered(&comm, &peer, &host, true, layout->size));
    mca_pml_umrddt.params.pack_min = 0;
    CHECK(packs == mca_pml_umrddt_select_offered(&comm, &peer, &host, true, layout->size));
    peer.has_gpu = false;
    CHECK(0 == mca_pml_umrddt_select_offered(&comm, &peer, &host, true, layout->size));
    peer.has_hca = true;
}

/* The assertion of mpi_communication_pattern about the other side's memory is used by a sender,
 * which otherwise assumes the kind and the layout of its own buffer; and by a receiver, for data
 * that is not in the envelope. */
static void hinted(void)
{
    static const opal_umrddt_gpu_where_t host = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}},
                                         gpu = {.memory = {.kind = OPAL_UMRDDT_GPU_DEVICE,
                                                           .legacy_ipc = true,
                                                           .buffer_id = 7}};
    static const struct {
        const opal_umrddt_gpu_where_t *where;
        mca_pml_umrddt_pattern_t pattern;
        bool declines;
    } cases[] = {
        {&host, MCA_PML_UMRDDT_PATTERN_NONE, false},
        {&host, MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU, false},
        {&host, MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU, true},
        {&gpu, MCA_PML_UMRDDT_PATTERN_NONE, false},
        {&gpu, MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU, false},
        {&gpu, MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU, true},
    };
    double times[MCA_PML_UMRDDT_SCHEMES], known = 0;

    /* an HCA that is slow with GPU memory, and GPUs that are slow in writes to system memory */
    tuning("near_rate 10\nhca_gpu_rate 0.001\ncpu_copy 1 1 1 1 1 1\n"
           "gpu_pack_host 0.001 0.001 0.001 0.001 0.001 0.001\n"
           "gpu_unpack_host 0.001 0.001 0.001 0.001 0.001 0.001\n"
           "gpu_launch 0.001\nipc_latency 0.001\n"
           "gpu_out_latency 0.001\ngpu_in_latency 0.001\n");
    lay(40);
    peer.same_host = peer.has_gpu = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        /* no packing scheme, which would apply to messages to GPUs */
        comm.schemes = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BITS_HCA;
        comm.pattern = (int) cases[i].pattern;
        CHECK(cases[i].declines
              == mca_pml_umrddt_select_passes(&comm, &peer, cases[i].where, false, 1, NULL));
    }
    comm.schemes = MCA_PML_UMRDDT_BITS_ALL;
    for (int hint = 0; hint < 2; ++hint) {
        mca_pml_umrddt_recv_t recv;

        comm.pattern =
            (int) (0 == hint ? MCA_PML_UMRDDT_PATTERN_NONE : MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU);
        (void) select_for(&recv, &peer, buffers);
        memcpy(times, recv.pair->selection.times, sizeof(times));
        CHECK(0 == hint || times[MCA_PML_UMRDDT_SCHEME_UMR] > 1000 * known);
        known = times[MCA_PML_UMRDDT_SCHEME_UMR];
        mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
        OBJ_RELEASE(recv.layout);
    }
    comm.pattern = (int) MCA_PML_UMRDDT_PATTERN_NONE;
}

int main(void)
{
    static mca_btl_umr_caps_t caps = {.write_pieces = 1};

    proc.proc_flags = OPAL_PROC_ON_NODE;
    peer.proc = other.proc = &proc;
    peer.has_hca = other.has_hca = true;
    peer.capable = other.capable = true;
    comm.schemes = MCA_PML_UMRDDT_BITS_ALL;
    comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    mca_pml_umrddt.hca = &hca;
    mca_pml_umrddt.caps = &caps;
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
    mca_pml_umrddt.params.model = (char *) path;
    mca_pml_umrddt.eager[false] = mca_pml_umrddt.eager[true] = OPAL_UMRDDT_SELECT_EAGER;
    mca_pml_umrddt.params.reuse = 1;
    mca_pml_umrddt.params.pack_depth = 4;
    mca_pml_umrddt.params.pack_chunk_floor = mca_pml_umrddt.params.pack_chunk_ceiling = SIZE_MAX;
    mca_pml_umrddt.params.mkey_cache = true;
    mca_pml_umrddt.params.gpu_hca = true;
    uses();
    observed();
    left_alone();
    failed();
    bounds();
    eager();
    declined();
    between_gpus();
    by_hca_for_one_piece();
    listed();
    hinted();
    to_gpu_only();
    mca_pml_umrddt_select_close();
    CHECK(0 == unlink(path));
    printf("test_selection: %lu checks\n", checks);
    return 0;
}
