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
 * Registration of GPU memory, and its cache.
 *
 * A registration covers a whole allocation, or only the needed pages if the HCA's window into the
 * GPU (PCIe BAR) is too small. The cache finds it by the allocation's BUFFER_ID. The driver never
 * reuses a BUFFER_ID, and the caller queries it for each message, so freed memory and new memory at
 * the same address are not confused. An unused registration stays cached until it is evicted, or
 * until a check finds that its memory was freed: each new registration checks all entries, and
 * periodic checks look at the least recently used entry. A registration has a unique id, like those
 * of system memory, so no cached key outlives it.
 *
 * The method of registration for a device, dma-buf or address, is determined with the first
 * allocation of cuMemAlloc whose attributes allow RDMA. The result of the kernel holds for the
 * whole device. Memory whose attributes do not allow RDMA is never tried.
 */

#include "opal_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/sys_limits.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_gpu_flush.h"
#include "opal/mca/btl/umr/btl_umr_mr_gpu.h"
#include "umrddt_help.h"

/* Lookups between checks whether the memory of the least recently used entry still exists. */
#define LOOK_PERIOD 64

/* Lookups after which a registration refused for lack of room is retried. */
#define RETRY_PERIOD 1024

/* Ids of registrations of system memory count from 1. */
#define FIRST_ID (UINT64_C(1) << 63)

/** A registration, or the record that registration is impossible. */
typedef struct mca_btl_umr_gpu_reg_t {
    opal_list_item_t super; /**< of gpu.regs */
    struct mca_btl_umr_gpu_reg_t *same_bucket;
    mca_btl_umr_reg_t reg; /**< mr: NULL if it was refused */
    uint64_t buffer_id;
    uint64_t start, end;
    size_t uses;
    bool again;        /**< refused for want of room: after this lookup it is tried again */
    uint32_t retry_at; /**< a number of lookups */
} mca_btl_umr_gpu_reg_t;
static OBJ_CLASS_INSTANCE(mca_btl_umr_gpu_reg_t, opal_list_item_t, NULL, NULL);

void mca_btl_umr_gpu_construct(mca_btl_umr_hca_t *hca)
{
    OBJ_CONSTRUCT(&hca->gpu.regs, opal_list_t);
}

void mca_btl_umr_gpu_destruct(mca_btl_umr_hca_t *hca)
{
    OBJ_DESTRUCT(&hca->gpu.regs);
}

/* ---------------------------------------------------------------------------------------------
 * The cache
 * ------------------------------------------------------------------------------------------- */

static mca_btl_umr_gpu_reg_t **bucket_of(mca_btl_umr_hca_t *hca, uint64_t buffer_id)
{
    return &hca->gpu.buckets[buffer_id % MCA_BTL_UMR_GPU_BUCKETS];
}

/** Lock held; not in use. */
static void drop(mca_btl_umr_hca_t *hca, mca_btl_umr_gpu_reg_t *entry)
{
    mca_btl_umr_gpu_reg_t **link = bucket_of(hca, entry->buffer_id);

    while (entry != *link) {
        link = &(*link)->same_bucket;
    }
    *link = entry->same_bucket;
    opal_list_remove_item(&hca->gpu.regs, &entry->super);
    if (NULL != entry->reg.mr) {
        int err;

        hca->events->reg_ends(hca, &entry->reg);
        err = ibv_dereg_mr(entry->reg.mr);
        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "memory of a GPU cannot be deregistered: %s", strerror(err));
        }
        --hca->stats.gpu_regs_now;
        hca->stats.gpu_bytes_now -= entry->end - entry->start;
    }
    OBJ_RELEASE(entry);
}

/** Evict the least recently used entry that is not in use. @return false: none */
static bool evict(mca_btl_umr_hca_t *hca, bool registered)
{
    opal_list_item_t *item;

    for (item = opal_list_get_last(&hca->gpu.regs); item != opal_list_get_begin(&hca->gpu.regs);
         item = opal_list_get_prev(item)) {
        mca_btl_umr_gpu_reg_t *entry = (mca_btl_umr_gpu_reg_t *) item;

        if (0 == entry->uses && (!registered || NULL != entry->reg.mr)) {
            drop(hca, entry);
            return true;
        }
    }
    return false;
}

/** True if it was dropped because its memory is gone. */
static bool drop_if_stale(mca_btl_umr_hca_t *hca, mca_btl_umr_gpu_reg_t *entry)
{
    if (0 < entry->uses || opal_umrddt_gpu_rdma_alive(entry->start, entry->buffer_id)) {
        return false;
    }
    ++hca->stats.gpu_regs_stale;
    drop(hca, entry);
    return true;
}

static void drop_stale(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item, *next;

    OPAL_LIST_FOREACH_SAFE (item, next, &hca->gpu.regs, opal_list_item_t) {
        (void) drop_if_stale(hca, (mca_btl_umr_gpu_reg_t *) item);
    }
}

/** The entry for [start, end) of an allocation. */
static mca_btl_umr_gpu_reg_t *find(mca_btl_umr_hca_t *hca, uint64_t buffer_id, uint64_t start,
                                   uint64_t end)
{
    mca_btl_umr_gpu_reg_t *entry = *bucket_of(hca, buffer_id);

    while (NULL != entry
           && (buffer_id != entry->buffer_id || start < entry->start || end > entry->end)) {
        entry = entry->same_bucket;
    }
    if (0 == ++hca->gpu.lookups % LOOK_PERIOD && !opal_list_is_empty(&hca->gpu.regs)) {
        mca_btl_umr_gpu_reg_t *oldest =
            (mca_btl_umr_gpu_reg_t *) opal_list_get_last(&hca->gpu.regs);

        if (oldest != entry) {
            (void) drop_if_stale(hca, oldest);
        }
    }
    if (NULL != entry && NULL == entry->reg.mr && entry->again
        && 0 <= (int32_t) (hca->gpu.lookups - entry->retry_at)) {
        drop(hca, entry);
        return NULL;
    }
    return entry;
}

/** Add an entry. @return NULL: out of memory, or the whole cache is in use */
static mca_btl_umr_gpu_reg_t *enter(mca_btl_umr_hca_t *hca, uint64_t buffer_id, uint64_t start,
                                    uint64_t end, struct ibv_mr *mr)
{
    static uint64_t last_id = FIRST_ID;
    mca_btl_umr_gpu_reg_t *entry, **bucket = bucket_of(hca, buffer_id);

    while (opal_list_get_size(&hca->gpu.regs)
           >= mca_btl_umr_share(mca_btl_umr_params.gpu_regs, 1)) {
        if (!evict(hca, false)) {
            return NULL;
        }
    }
    entry = OBJ_NEW(mca_btl_umr_gpu_reg_t);
    if (NULL == entry) {
        return NULL;
    }
    memset(&entry->reg, 0, sizeof(entry->reg));
    entry->reg.mr = mr;
    entry->reg.gpu = true;
    entry->reg.id = ++last_id;
    entry->buffer_id = buffer_id;
    entry->start = start;
    entry->end = end;
    entry->uses = 0;
    entry->again = false;
    entry->same_bucket = *bucket;
    *bucket = entry;
    opal_list_prepend(&hca->gpu.regs, &entry->super);
    if (NULL != mr) {
        entry->reg.handle.rkey = mr->rkey;
        entry->reg.handle.lkey = mr->lkey;
        ++hca->stats.gpu_regs_now;
        hca->stats.gpu_bytes_now += end - start;
    }
    return entry;
}

void mca_btl_umr_gpu_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg)
{
    mca_btl_umr_gpu_reg_t *entry = container_of(reg, mca_btl_umr_gpu_reg_t, reg);

    (void) hca;
    --entry->uses;
}

void mca_btl_umr_gpu_stop(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_gpu_flush_stop(hca);
    while (evict(hca, false)) {
    }
    memset(hca->gpu.registrations, 0, sizeof(hca->gpu.registrations));
    hca->gpu.flush_failed = false;
}

/* ---------------------------------------------------------------------------------------------
 * Registering
 * ------------------------------------------------------------------------------------------- */

/** Why a method is not available. */
typedef struct refusal_t {
    char dmabuf[128];
    char address[128];
} refusal_t;

/** By dma-buf. @return 0 or an errno */
static int by_dmabuf(mca_btl_umr_hca_t *hca, const opal_umrddt_gpu_memory_t *where, uint64_t start,
                     uint64_t end, int rights, struct ibv_mr **mr, refusal_t *why)
{
    uint64_t page = (uint64_t) opal_getpagesize();
    uint64_t first = start & ~(page - 1);
    uint64_t pages = ((end + page - 1) & ~(page - 1)) - first;
    CUresult rc;
    int fd, err;

    rc = opal_umrddt_gpu_rdma_dmabuf(where, first, pages, &fd);
    if (CUDA_SUCCESS != rc) {
        snprintf(why->dmabuf, sizeof(why->dmabuf),
                 "the CUDA driver exports none (cuMemGetHandleForAddressRange: error %d)",
                 (int) rc);
        return EOPNOTSUPP;
    }
    errno = 0;
    /* The pages at the ends may belong to other allocations too: those bytes are left out. */
    *mr =
        ibv_reg_dmabuf_mr(hca->device.pd, start - first, (size_t) (end - start), start, fd, rights);
    err = NULL != *mr ? 0 : 0 != errno ? errno : EIO;
    close(fd);
    if (0 != err) {
        snprintf(why->dmabuf, sizeof(why->dmabuf),
                 "the kernel does not register it (ibv_reg_dmabuf_mr: %s)", strerror(err));
    }
    return err;
}

/** By the address. @return 0 or an errno */
static int by_address(mca_btl_umr_hca_t *hca, uint64_t start, uint64_t end, int rights,
                      struct ibv_mr **mr, refusal_t *why)
{
    int err;

    errno = 0;
    *mr = ibv_reg_mr(hca->device.pd, (void *) (uintptr_t) start, (size_t) (end - start), rights);
    err = NULL != *mr ? 0 : 0 != errno ? errno : EIO;
    if (0 != err) {
        snprintf(why->address, sizeof(why->address),
                 "the kernel does not register it (ibv_reg_mr: %s)", strerror(err));
    }
    return err;
}

/** Message, once: missing support. */
static void report_unreachable(const mca_btl_umr_hca_t *hca, int device, const refusal_t *why)
{
    static bool reported = false;

    if (!reported) {
        reported = true;
        opal_show_help("help-btl-umr.txt", "gpu unreachable", true, opal_process_info.nodename,
                       hca->device.name, device, why->dmabuf, why->address,
                       0 == access("/sys/module/nvidia_peermem", F_OK)
                           ? "loaded"
                           : "not loaded, or not visible in this container");
    }
}

/** Message, once: registered amount. */
static void report_full(const mca_btl_umr_hca_t *hca, uint64_t needed)
{
    static bool reported = false;

    if (!reported) {
        reported = true;
        opal_show_help("help-btl-umr.txt", "gpu full", true, opal_process_info.nodename,
                       hca->device.name, (unsigned long long) needed,
                       (unsigned long long) hca->stats.gpu_bytes_now);
    }
}

/** Register by the method of the device, or determine the method. @return 0 or an errno */
static int try_register(mca_btl_umr_hca_t *hca, const opal_umrddt_gpu_memory_t *where,
                        uint64_t start, uint64_t end, struct ibv_mr **mr)
{
    const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const opal_umrddt_gpu_rdma_caps_t *caps = opal_umrddt_gpu_rdma_caps(where->device);
    uint8_t *registration = &hca->gpu.registrations[where->device];
    /*
     * Other kinds of memory can be refused for their own reasons; for this kind the device is the
     * reason.
     */
    bool usual = NULL != where->ctx && NULL == where->pool && where->legacy_ipc;
    refusal_t why = {"the CUDA driver says that it exports none (DMA_BUF_SUPPORTED is 0)", ""};
    opal_umrddt_gpu_memory_t memory = *where;
    int err = EOPNOTSUPP;

    /* Required by the GPUDirect RDMA manual; pml/umrddt has done so for buffers of messages. */
    (void) opal_umrddt_gpu_sync_memops(where->base, &memory);
    if (MCA_BTL_UMR_GPU_BY_ADDRESS != *registration && caps->dmabuf) {
        err = by_dmabuf(hca, where, start, end, rights, mr, &why);
        if (0 == err) {
            *registration = MCA_BTL_UMR_GPU_BY_DMABUF;
        }
        if (0 == err || ENOMEM == err || MCA_BTL_UMR_GPU_BY_DMABUF == *registration) {
            return err;
        }
    }
    err = by_address(hca, start, end, rights, mr, &why);
    if (0 == err) {
        *registration = MCA_BTL_UMR_GPU_BY_ADDRESS;
    } else if (ENOMEM != err && usual && MCA_BTL_UMR_GPU_UNTRIED == *registration) {
        *registration = MCA_BTL_UMR_GPU_NOT;
        report_unreachable(hca, where->device, &why);
    }
    return err;
}

/** Find or create the registration of [start, end). Lock held. @return as the table's function */
static int reg_get(mca_btl_umr_hca_t *hca, const opal_umrddt_gpu_memory_t *where, uint64_t start,
                   uint64_t end, mca_btl_umr_gpu_reg_t **result)
{
    mca_btl_umr_gpu_reg_t *entry = find(hca, where->buffer_id, start, end);
    uint64_t first = where->base, last = where->base + where->size;
    struct ibv_mr *mr = NULL;
    int err;

    if (NULL != entry && NULL == entry->reg.mr) {
        return entry->again ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERR_BAD_PARAM;
    }
    if (NULL != entry) {
        opal_list_remove_item(&hca->gpu.regs, &entry->super);
        opal_list_prepend(&hca->gpu.regs, &entry->super);
        ++hca->stats.gpu_reg_hits;
        *result = entry;
        return OPAL_SUCCESS;
    }
    if (MCA_BTL_UMR_GPU_NOT == hca->gpu.registrations[where->device]) {
        return OPAL_ERR_BAD_PARAM;
    }
    drop_stale(hca);
    err = try_register(hca, where, first, last, &mr);
    if (ENOMEM == err && (first < start || end < last)) {
        /* Register only a part. */
        first = start;
        last = end;
        err = try_register(hca, where, first, last, &mr);
    }
    while (ENOMEM == err && evict(hca, true)) {
        err = try_register(hca, where, first, last, &mr);
    }
    if (0 != err) {
        ++hca->stats.gpu_reg_refused;
        entry = enter(hca, where->buffer_id, start, end, NULL);
        if (NULL != entry && ENOMEM == err) {
            entry->again = true;
            entry->retry_at = hca->gpu.lookups + RETRY_PERIOD;
        }
        if (ENOMEM == err) {
            report_full(hca, end - start);
        }
        return ENOMEM == err ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERR_BAD_PARAM;
    }
    entry = enter(hca, where->buffer_id, first, last, mr);
    if (NULL == entry) {
        (void) ibv_dereg_mr(mr);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ++hca->stats.gpu_reg_misses;
    *result = entry;
    return OPAL_SUCCESS;
}

/** True unless this HCA is known to refuse it. Lock held. */
static bool not_refused(mca_btl_umr_hca_t *hca, const opal_umrddt_gpu_memory_t *where)
{
    bool reachable = MCA_BTL_UMR_GPU_NOT != hca->gpu.registrations[where->device];

    for (const mca_btl_umr_gpu_reg_t *entry = *bucket_of(hca, where->buffer_id);
         reachable && NULL != entry; entry = entry->same_bucket) {
        if (where->buffer_id == entry->buffer_id && NULL == entry->reg.mr) {
            /* Count also for entries without room, so that they are retried. */
            reachable = entry->again && 0 <= (int32_t) (++hca->gpu.lookups - entry->retry_at);
        }
    }
    return reachable;
}

bool mca_btl_umr_gpu_reachable(mca_btl_umr_endpoint_t *endpoint,
                               const opal_umrddt_gpu_memory_t *where)
{
    bool reachable = true;

    if (!opal_umrddt_gpu_rdma_takes(where)) {
        return false;
    }
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (NULL != endpoint) {
        reachable = not_refused(endpoint->hca, where);
    } else {
        for (uint32_t i = 0; reachable && i < mca_btl_umr.hca_count; ++i) {
            reachable = not_refused(mca_btl_umr.hcas[i], where);
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return reachable;
}

/** The receiver could not make the received bytes visible. */
static bool cannot_flush(const mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role, int device)
{
    return MCA_BTL_UMR_REMOTE == role && hca->gpu.flush_failed
           && OPAL_UMRDDT_GPU_FLUSH_READ == mca_btl_umr_gpu_flush_how(device);
}

int mca_btl_umr_gpu_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                             const opal_umrddt_gpu_memory_t *where, void *buffer,
                             const opal_iov_cache_layout_t *layout, uint64_t size,
                             mca_btl_umr_memory_t **result)
{
    mca_btl_umr_hca_t *hca = NULL == endpoint ? mca_btl_umr_first() : endpoint->hca;
    uint64_t start, end;
    mca_btl_umr_gpu_reg_t *entry;
    mca_btl_umr_memory_t *memory;
    int rc;

    if (MCA_BTL_UMR_ROLE_MAX <= role || NULL == layout || NULL == result || 0 == size
        || size > layout->size || !opal_umrddt_gpu_rdma_takes(where)) {
        return OPAL_ERR_BAD_PARAM;
    }
    start = (uint64_t) (uintptr_t) buffer + (uint64_t) layout->lb;
    end = (uint64_t) (uintptr_t) buffer + (uint64_t) layout->ub;
    if (start < where->base || end > where->base + where->size) {
        return OPAL_ERR_BAD_PARAM; /* several allocations; each would need its own classification */
    }
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    rc = cannot_flush(hca, role, where->device) ? OPAL_ERR_BAD_PARAM
                                                : reg_get(hca, where, start, end, &entry);
    if (OPAL_SUCCESS == rc) {
        ++entry->uses;
        memory = mca_btl_umr_memory_take(hca, role, buffer, layout, size);
        if (NULL == memory || !mca_btl_umr_memory_add(memory, (uintptr_t) start, (uintptr_t) end)) {
            --entry->uses;
            rc = OPAL_ERR_OUT_OF_RESOURCE;
            if (NULL != memory) {
                mca_btl_umr_memory_put(memory);
            }
        } else {
            memory->parts[0].reg = &entry->reg;
            memory->gpu = true;
            memory->where = *where;
            *result = memory;
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}
