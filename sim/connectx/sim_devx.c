/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <endian.h>
#include <errno.h>

#include "sim_alloc.h"
#include "sim_key.h"

/* Firmware commands and their answers, as far as this HCA has them. */
enum {
    OP_QUERY_HCA_CAP = 0x100,
    OP_CREATE_MKEY = 0x200,
    STATUS_BAD_OP = 0x2,
    STATUS_BAD_PARAM = 0x3,
    STATUS_LIMIT = 0x8,
    CAP_GENERAL = 0,
    HEAD = 16, /* bytes before the capability, or the mkey context */
    MKC_BYTES = 64,
    ACCESS_MODE_KLM = 2,
};

/* A field of the mkey context: its first bit, counted from the most significant of the first byte.
 */
struct field {
    unsigned bit;
    unsigned width;
};

static const struct field mkc_access_high = {0x3, 3};
static const struct field mkc_free = {0x1, 1};
static const struct field mkc_umr_en = {0x10, 1};
static const struct field mkc_access_low = {0x16, 2};
static const struct field mkc_tag = {0x38, 8};
static const struct field mkc_bsf_en = {0x61, 1};
static const struct field mkc_remote_inval = {0x67, 1};
static const struct field mkc_pd = {0x68, 24};
static const struct field mkc_octwords = {0x1a0, 32};
static const struct field out_mkey_index = {0x48, 24};

static uint32_t get(const uint8_t *base, struct field f)
{
    uint32_t value = 0;
    unsigned i;

    for (i = f.bit; i < f.bit + f.width; i++) {
        value = value << 1 | (base[i / 8] >> (7 - i % 8) & 1);
    }
    return value;
}

static void put(uint8_t *base, struct field f, uint32_t value)
{
    unsigned i;

    for (i = f.width; 0 < i; i--, value >>= 1) {
        unsigned bit = f.bit + i - 1;

        base[bit / 8] =
            (uint8_t) ((base[bit / 8] & ~(1 << (7 - bit % 8))) | (value & 1) << (7 - bit % 8));
    }
}

/* The firmware says no: the status is in the answer, and the kernel says EREMOTEIO. */
static int refuse(uint8_t *out, size_t out_size, uint8_t status)
{
    if (0 < out_size) {
        memset(out, 0, out_size);
        out[0] = status;
    }
    return EREMOTEIO;
}

static unsigned log2_of(uint32_t n)
{
    unsigned log = 0;

    while (1 < n) {
        n >>= 1;
        log++;
    }
    return log;
}

/* The general capabilities that matter here; all others are absent. */
static void fill_general(int device, uint8_t *cap, size_t size)
{
    const struct {
        struct field field;
        uint32_t value;
    } caps[] = {
        {{0x80, 8}, log2_of(sim.conf.max_wr)},     /* log_max_srq_sz */
        {{0x88, 8}, log2_of(sim.conf.max_wr)},     /* log_max_qp_sz */
        {{0x9b, 5}, 12},                           /* log_max_qp */
        {{0xab, 5}, 16},                           /* log_max_srq */
        {{0xc8, 8}, 22},                           /* log_max_cq_sz */
        {{0xdb, 5}, 16},                           /* log_max_cq */
        {{0xea, 6}, 16},                           /* log_max_mkey */
        {{0x100, 8}, sim.conf.max_indirection},    /* max_indirection */
        {{0x11a, 6}, sim.conf.log_max_klm},        /* log_max_klm_list_size */
        {{0x14a, 6}, log2_of(16)},                 /* log_max_ra_req_qp */
        {{0x15a, 6}, log2_of(16)},                 /* log_max_ra_res_qp */
        {{0x1b6, 2}, sim.conf.ports[device].eth},  /* port_type */
        {{0x1b8, 8}, 1},                           /* num_ports */
        {{0x1c3, 5}, sim.conf.log_max_msg},        /* log_max_msg */
        {{0x1fc, 4}, 1},                           /* cqe_version */
        {{0x209, 1}, SIM_UMR_OFF == sim.conf.umr}, /* umr_indirect_mkey_disabled */
        {{0x290, 16}, sim.conf.max_sq_desc},       /* max_wqe_sz_sq */
        {{0x2b0, 16}, 512},                        /* max_wqe_sz_rq */
    };
    size_t i;

    for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        if ((caps[i].field.bit + caps[i].field.width + 7) / 8 <= size) {
            put(cap, caps[i].field, caps[i].value);
        }
    }
}

static unsigned opcode_of(const uint8_t *in, size_t size)
{
    return 2 <= size ? (unsigned) in[0] << 8 | in[1] : 0;
}

int sim_devx_general(struct sim_ctx *ctx, const uint8_t *in, size_t in_size, uint8_t *out,
                     size_t out_size)
{
    if (!ctx->devx) {
        return EPERM;
    }
    if (OP_QUERY_HCA_CAP != opcode_of(in, in_size) || in_size < 8 || out_size < HEAD) {
        return refuse(out, out_size, STATUS_BAD_OP);
    }
    memset(out, 0, out_size);
    /* The lowest bit selects current or maximal values; they are the same here. */
    if (CAP_GENERAL == ((unsigned) in[6] << 8 | in[7]) >> 1) {
        fill_general(ctx->device, out + HEAD, out_size - HEAD);
    }
    return 0;
}

static struct sim_pd *pd_of_number(struct sim_ctx *ctx, uint32_t pdn)
{
    uint32_t i;

    for (i = 1; i < sim.nobjs; i++) {
        struct sim_pd *pd = (struct sim_pd *) sim.objs[i];

        if (NULL != pd && SIM_PD == pd->super.kind && ctx == pd->super.ctx && pdn == pd->pdn) {
            return pd;
        }
    }
    return NULL;
}

int sim_devx_create(struct sim_ctx *ctx, const uint8_t *in, size_t in_size, uint8_t *out,
                    size_t out_size, uint32_t *handle)
{
    const uint8_t *mkc = in + HEAD;
    struct sim_layout *layout;
    struct sim_key *key;
    struct sim_pd *pd;
    uint32_t entries;

    if (!ctx->devx) {
        return EPERM;
    }
    if (OP_CREATE_MKEY != opcode_of(in, in_size) || SIM_UMR_OFF == sim.conf.umr) {
        return refuse(out, out_size, STATUS_BAD_OP);
    }
    if (in_size < HEAD + MKC_BYTES || out_size < HEAD) {
        return refuse(out, out_size, STATUS_BAD_PARAM);
    }
    pd = pd_of_number(ctx, get(mkc, mkc_pd));
    entries = get(mkc, mkc_octwords);
    if (NULL == pd || 1 != get(mkc, mkc_umr_en) || 0 != get(mkc, mkc_access_high)
        || ACCESS_MODE_KLM != get(mkc, mkc_access_low) || 0 != get(mkc, mkc_bsf_en)
        || 1 != get(mkc, mkc_free) || 0 == entries || 1u << sim.conf.log_max_klm < entries) {
        sim_log(1, "an mkey with %u entries is refused", entries);
        return refuse(out, out_size, STATUS_BAD_PARAM);
    }
    if (NULL != sim_fault(FAULT_mkey) || (0 != sim.conf.mkeys && sim.mkeys_now >= sim.conf.mkeys)) {
        return refuse(out, out_size, STATUS_LIMIT);
    }
    key = sim_obj_new(ctx, SIM_MKEY, sizeof(*key));
    layout = sim_alloc(sizeof(*layout));
    if (NULL == key || NULL == layout || 0 != sim_key_add(key)) {
        sim_free(layout);
        if (NULL != key) {
            sim_obj_free(key);
        }
        return refuse(out, out_size, STATUS_LIMIT);
    }
    layout->free = true;
    layout->tag = (uint8_t) get(mkc, mkc_tag);
    key->now = layout;
    key->pd = pd;
    pd->super.uses++;
    key->capacity = entries;
    key->remote_inval = 0 != get(mkc, mkc_remote_inval);
    sim.mkeys_now++;
    sim.count.mkeys++;
    memset(out, 0, out_size);
    put(out, out_mkey_index, key->index);
    *handle = key->super.handle;
    sim_log(2, "mkey 0x%x: %u entries", key->index << 8, entries);
    return 0;
}

void sim_mkey_destroy(struct sim_obj *obj)
{
    struct sim_key *key = (struct sim_key *) obj;

    sim_key_remove(key);
    key->pd->super.uses--;
    sim.mkeys_now--;
    sim_obj_free(key);
}

int sim_devx_destroy(struct sim_ctx *ctx, uint32_t handle)
{
    struct sim_obj *obj = sim_obj_get(ctx, SIM_MKEY, handle);

    if (NULL == obj) {
        return EINVAL;
    }
    sim_cmd_destroy(obj);
    return 0;
}
