/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * The commands of the device: what arrives by ioctl(RDMA_VERBS_IOCTL). Everything is called with
 * the lock held and returns 0 or an errno.
 */

#ifndef SIM_CMD_H
#define SIM_CMD_H

#include "sim.h"

#include <string.h>

#define SIM_COMP_VECTORS 1u /**< completion vectors of a device */

struct ib_uverbs_ioctl_hdr;
struct sim_gpu_memory;

/** A command in the older form: flat structures in and out, of the core and of the driver. */
struct sim_call {
    const void *in;
    size_t in_size;
    void *out;
    size_t out_size;
    const void *driver_in;
    size_t driver_in_size;
    void *driver_out;
    size_t driver_out_size;
    const struct sim_gpu_memory *gpu; /**< REG_MR: it is memory of a GPU; NULL: it is not */
};

/** Copy as much as there is; the rest of the destination is zero. */
static inline void sim_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
    size_t n = to_size < from_size ? to_size : from_size;

    if (0 < n) {
        memcpy(to, from, n);
    }
    if (to_size > n) {
        memset((char *) to + n, 0, to_size - n);
    }
}

/** A new context on a device: fd is what user space will use. @return 0 or errno */
int sim_ctx_open(int fd, int device);
/** The context of a descriptor, or NULL. */
struct sim_ctx *sim_ctx_of(int fd);
/** The descriptor is being closed. */
void sim_ctx_close(struct sim_ctx *ctx);
/** After a fork, in the child: none of it is ours. */
void sim_cmd_forget(void);

/** The same for the hooks: sim_preload.c */
void sim_preload_forget(void);

/**
 * One ioctl: sim_ioctl.c.
 *
 * @param[in] gpu  what sim_cmd_gpu found
 */
int sim_cmd_ioctl(struct sim_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                  const struct sim_gpu_memory *gpu);

/**
 * Look whether a command registers memory of a GPU by its address. Without the lock.
 *
 * @param[out] gpu  fd is to be closed; -1: it does not, or cannot
 */
void sim_cmd_gpu(struct ib_uverbs_ioctl_hdr *hdr, struct sim_gpu_memory *gpu);

/** Destroy an object of any kind, even if other objects refer to it. */
void sim_cmd_destroy(struct sim_obj *obj);

/* sim_cmd_device.c */
int sim_cmd_get_context(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_query_device(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_query_device_ex(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_query_port(struct sim_ctx *ctx, const struct sim_call *call);

/* sim_cmd_memory.c */
int sim_cmd_alloc_pd(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_dealloc_pd(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_reg_mr(struct sim_ctx *ctx, const struct sim_call *call);
/** A dma-buf; handle, lkey (which is the rkey) are written. */
int sim_cmd_reg_dmabuf(struct sim_ctx *ctx, uint32_t pd, uint64_t offset, uint64_t length,
                       uint64_t iova, int fd, uint32_t access, const struct sim_gpu_memory *gpu,
                       uint32_t *handle, uint32_t *lkey);
int sim_cmd_rereg_mr(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_dereg_mr(struct sim_ctx *ctx, const struct sim_call *call);
void sim_mr_destroy(struct sim_obj *obj);

/* sim_cmd_cq.c */
int sim_cmd_create_channel(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_create_cq(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_create_cq_ex(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_destroy_cq(struct sim_ctx *ctx, const struct sim_call *call);
void sim_cq_destroy(struct sim_obj *obj);
void sim_channel_destroy(struct sim_obj *obj);

/* sim_cmd_srq.c */
int sim_cmd_create_srq(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_modify_srq(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_query_srq(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_destroy_srq(struct sim_ctx *ctx, const struct sim_call *call);
void sim_srq_destroy(struct sim_obj *obj);

/* sim_cmd_qp.c */
int sim_cmd_create_qp(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_create_qp_ex(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_modify_qp(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_query_qp(struct sim_ctx *ctx, const struct sim_call *call);
int sim_cmd_destroy_qp(struct sim_ctx *ctx, const struct sim_call *call);
void sim_qp_destroy(struct sim_obj *obj);

/* sim_devx.c: firmware commands, big-endian structures in and out */
int sim_devx_general(struct sim_ctx *ctx, const uint8_t *in, size_t in_size, uint8_t *out,
                     size_t out_size);
int sim_devx_create(struct sim_ctx *ctx, const uint8_t *in, size_t in_size, uint8_t *out,
                    size_t out_size, uint32_t *handle);
int sim_devx_destroy(struct sim_ctx *ctx, uint32_t handle);
void sim_mkey_destroy(struct sim_obj *obj);

#endif /* SIM_CMD_H */
