/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The work request of a non-inline UMR list, which btl/umr builds by itself, against that of
 * libmlx5 for the same list inline, byte by byte: for each length that libmlx5 can write.
 * Differences are the inline flag, the size, and a pointer to the list instead of the list. One
 * process; the queue pair is in RESET, so no work request is executed.
 */

#include "opal_config.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/opal.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_klm.h"

#include "../common/check.h"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params = {.list_bytes = 65536};

enum {
    MOST = 52,  /* entries of a list inline */
    HEAD = 128, /* bytes in front of the list or of its pointer */
    BLOCK = 64
};

static mca_btl_umr_hca_t hca;
static struct mlx5dv_qp queue; /* the send queue in memory */

static void make_queue(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = hca.mkeys.cq,
        .recv_cq = hca.mkeys.cq,
        .cap = {.max_send_wr = 64,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = MOST * 16 - 4},
        .pd = hca.device.pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_LOCAL_INV};
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask =
            MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST
                          | MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_RAW_WQE};
    mca_btl_umr_sq_t *sq = &hca.mkeys.sq;
    struct mlx5dv_obj object = {.qp = {.out = &queue}};

    memset(sq, 0, sizeof(*sq));
    sq->qp = mlx5dv_create_qp(hca.device.context, &attr, &dv_attr);
    CHECK(NULL != sq->qp);
    sq->qpx = ibv_qp_to_qp_ex(sq->qp);
    sq->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(sq->qpx);
    sq->depth = 64;
    memset(&queue, 0, sizeof(queue));
    object.qp.in = sq->qp;
    CHECK(0 == mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) && BLOCK == queue.sq.stride);
    mca_btl_umr_klm_reset(&hca);
}

/** The blocks that work request @p at has in the queue. */
static uint32_t blocks_of(const unsigned char *wqe)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *) wqe;

    return ((be32toh(ctrl->qpn_ds) & 0x3f) * 16 + BLOCK - 1) / BLOCK;
}

/** What btl/umr made: a work request, with its index in the queue, and a list at @a addr. */
typedef struct made_t {
    uint32_t count;
    uint16_t index;
    uint64_t addr;
    unsigned char head[HEAD + 16];
    unsigned char list[16 * MOST];
} made_t;

/** Entries of a list with its padding. */
static uint32_t padded(uint32_t count)
{
    return (count + 3) / 4 * 4;
}

/** Compare with the work request of libmlx5. @return NULL, or the first part that differs */
static const char *difference(const unsigned char *inlined, const made_t *made)
{
    struct mlx5_wqe_ctrl_seg ctrl, raw_ctrl;
    struct mlx5_wqe_umr_ctrl_seg umr, raw_umr;
    const size_t context = sizeof(ctrl) + sizeof(umr);
    struct mlx5_wqe_data_seg data;

    /* Control: all but size and index, which are those of this place. */
    memcpy(&ctrl, inlined, sizeof(ctrl));
    memcpy(&raw_ctrl, made->head, sizeof(raw_ctrl));
    CHECK((HEAD + 16 * padded(made->count)) / 16 == (be32toh(ctrl.qpn_ds) & 0x3f));
    ctrl.qpn_ds = htobe32((be32toh(ctrl.qpn_ds) & ~0x3fu) | (HEAD + 16) / 16);
    ctrl.opmod_idx_opcode =
        htobe32((be32toh(ctrl.opmod_idx_opcode) & 0xff0000ffu) | (uint32_t) made->index << 8);
    if (0 != memcmp(&ctrl, &raw_ctrl, sizeof(ctrl))) {
        return "control";
    }

    /* UMR control: all but the inline flag. */
    memcpy(&umr, inlined + sizeof(ctrl), sizeof(umr));
    memcpy(&raw_umr, made->head + sizeof(ctrl), sizeof(raw_umr));
    CHECK(0 != (umr.flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE));
    umr.flags &= (uint8_t) ~MLX5_WQE_UMR_CTRL_FLAG_INLINE;
    if (0 != memcmp(&umr, &raw_umr, sizeof(umr))) {
        return "UMR control";
    }

    /* The mkey context: everything. */
    if (0
        != memcmp(inlined + context, made->head + context,
                  sizeof(struct mlx5_wqe_mkey_context_seg))) {
        return "mkey context";
    }

    /* The list with its padding, here in memory, which the data segment names. */
    memcpy(&data, made->head + HEAD, sizeof(data));
    if (16 * padded(made->count) != be32toh(data.byte_count)
        || hca.klm.mr->lkey != be32toh(data.lkey) || made->addr != be64toh(data.addr)) {
        return "pointer";
    }
    return 0 == memcmp(inlined + HEAD, made->list, 16 * padded(made->count)) ? NULL : "list";
}

/** Each byte that differs is noticed. */
static void plant(const unsigned char *inlined, made_t *made)
{
    for (size_t i = 0; i < sizeof(made->head) + 16 * padded(made->count); ++i) {
        unsigned char *byte =
            i < sizeof(made->head) ? &made->head[i] : &made->list[i - sizeof(made->head)];

        for (int bit = 0; bit < 8; bit += 7) {
            *byte ^= (unsigned char) (1 << bit);
            CHECK(NULL != difference(inlined, made));
            *byte ^= (unsigned char) (1 << bit);
        }
    }
}

/** The same list by libmlx5, twice (the second has the fence behind a UMR), and by btl/umr. */
static void compare(mca_btl_umr_role_t role, uint32_t count)
{
    const unsigned char *queued, *inlined, *raw;
    struct mlx5_wqe_data_seg *list;
    mca_btl_umr_mkey_t *mkey;
    struct ibv_sge sges[MOST];
    uint64_t bytes = 0;
    made_t made;

    make_queue();
    CHECK(0 == mca_btl_umr_mkey_create(&hca, MOST, &mkey));
    for (uint32_t i = 0; i < count; ++i) {
        mca_btl_umr_mkey_retag(mkey); /* another tag for each length */
        sges[i] = (struct ibv_sge){0x123456789a00ull + 4096 * i, 17 + 3 * i, 0xabcd00 + i};
        bytes += sges[i].length;
    }
    ibv_wr_start(hca.mkeys.sq.qpx);
    for (int i = 0; i < 2; ++i) {
        (void) mca_btl_umr_mkey_build_map(mkey, role, (uint16_t) count, sges, true);
    }
    list = mca_btl_umr_klm_list(&hca, count);
    CHECK(NULL != list);
    memset(list, 0xee, 16 * (count + 4));
    for (uint32_t i = 0; i < count; ++i) {
        mca_btl_umr_klm_set(&list[i], sges[i].addr, sges[i].length, sges[i].lkey);
    }
    (void) mca_btl_umr_klm_build_map(mkey, role, count, bytes, list);
    ibv_wr_abort(hca.mkeys.sq.qpx); /* they are in the queue all the same */

    queued = queue.sq.buf;
    inlined = queued + BLOCK * blocks_of(queued);
    raw = inlined + BLOCK * blocks_of(inlined);

    made.count = count;
    made.index = (uint16_t) (blocks_of(queued) + blocks_of(inlined));
    made.addr = (uintptr_t) list;
    CHECK(HEAD + 16 == sizeof(made.head) && 0 == made.addr % 2048);
    memcpy(made.head, raw, sizeof(made.head));
    memcpy(made.list, list, 16 * padded(count));
    CHECK(NULL == difference(inlined, &made));
    plant(inlined, &made);

    mca_btl_umr_mkey_destroy(mkey);
    CHECK(0 == ibv_destroy_qp(hca.mkeys.sq.qp));
}

/* The parts of btl/umr that are not linked. */
void mca_btl_umr_refuse(const char *format, ...)
{
    (void) format;
}

static void open_device(void)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device **devices = ibv_get_device_list(NULL);

    CHECK(NULL != devices && NULL != devices[0]);
    hca.device.context = mlx5dv_open_device(devices[0], &attr);
    CHECK(NULL != hca.device.context);
    ibv_free_device_list(devices);
    hca.device.pd = ibv_alloc_pd(hca.device.context);
    hca.mkeys.cq = ibv_create_cq(hca.device.context, 64, NULL, NULL, 0);
    CHECK(NULL != hca.device.pd && NULL != hca.mkeys.cq);
    hca.device.update_tag = true;
    hca.device.max_list = 256;
    hca.mkeys.raw = true;
    mca_btl_umr_params.selftest = 1;
    mca_btl_umr_params.long_entries = 256;
    mca_btl_umr_params.long_mkeys = 2;
    OBJ_CONSTRUCT(&hca.mkeys.idle, opal_list_t);
    mca_btl_umr_klm_construct(&hca);
    mca_btl_umr_klm_start(&hca);
    CHECK(hca.caps.tiers[MCA_BTL_UMR_LONG].usable);
}

int main(int argc, char **argv)
{
    CHECK(OPAL_SUCCESS == opal_init(&argc, &argv));
    open_device();
    for (uint32_t count = 1; count <= MOST; ++count) {
        compare(MCA_BTL_UMR_LOCAL, count);
        compare(MCA_BTL_UMR_REMOTE, count);
    }
    mca_btl_umr_klm_stop(&hca);
    CHECK(0 == ibv_destroy_cq(hca.mkeys.cq) && 0 == ibv_dealloc_pd(hca.device.pd));
    CHECK(0 == ibv_close_device(hca.device.context));
    printf("ok: %d work requests\n", 2 * MOST);
    return 0;
}
