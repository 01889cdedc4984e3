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
 * Registration of the memory that a layout touches in a buffer.
 *
 * Registrations are in Open MPI's registration cache (rcache/grdma). It drops them when the memory
 * hooks (or UCX, umrddt_unmaps.h) report that memory is unmapped. Without such reports nothing is
 * cached: each message registers and deregisters.
 *
 * A layout is one registration if its pieces are near each other. If they are far apart (absolute
 * addresses on heap and stack, several mappings of a file), pieces at most btl_umr_reg_gap apart
 * are registered together. If such a range contains a hole, only the touched pages are registered.
 *
 * Rights. A registration has local and remote write access if the memory allows it. A send buffer
 * may be const: LOCAL then accepts a read-only registration. A later REMOTE request for the same
 * pages replaces it, or fails.
 */

#include "opal_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "opal/mca/rcache/base/base.h"
#include "opal/memoryhooks/memory.h"
#include "opal/runtime/opal_params.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/sys_limits.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_loose.h"
#include "opal/mca/btl/umr/btl_umr_mr.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_unmaps.h"
#include "umrddt_help.h"

/* Access flags of the cache for a writable registration. */
#define MCA_BTL_UMR_REG_WRITABLE \
    (MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_READ | MCA_RCACHE_ACCESS_REMOTE_WRITE)

/* ------------------------------------------------------------------------------------------- *
 * Registrations of the device
 * ------------------------------------------------------------------------------------------- */

static void mr_construct(mca_btl_umr_mr_t *mr)
{
    mr->hca = NULL;
    mr->mr = NULL;
    mr->size = 0;
    mr->reg = NULL;
}

static void mr_destruct(mca_btl_umr_mr_t *mr)
{
    int err = NULL == mr->mr ? 0 : ibv_dereg_mr(mr->mr);

    if (0 != err) {
        MCA_BTL_UMR_LOG(mr->hca, "memory at %p cannot be deregistered: %s", mr->mr->addr,
                        strerror(err));
    } else if (NULL != mr->mr) {
        mr->hca->stats.reg_bytes_now -= mr->size;
    }
}

OBJ_CLASS_INSTANCE(mca_btl_umr_mr_t, opal_object_t, mr_construct, mr_destruct);

/**
 * Register with all rights, or with the requested rights if these are read-only.
 *
 * @param[in,out] access  MCA_RCACHE_ACCESS_*: requested, obtained
 *
 * @return NULL, with errno
 */
static struct ibv_mr *mr_make(mca_btl_umr_hca_t *hca, void *base, size_t size, int32_t *access)
{
    /*
     * Remote rights even if peers only get mkeys: the HCA may require them below an mkey for a
     * write.
     */
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    int32_t wanted = *access;
    struct ibv_mr *mr;

    /* Atomics only for users of the module that request them. */
    if (0 != (wanted & MCA_RCACHE_ACCESS_REMOTE_ATOMIC)) {
        rights |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    errno = 0;
    mr = ibv_reg_mr(hca->device.pd, base, size, rights);
    if (NULL != mr) {
        *access = MCA_BTL_UMR_REG_WRITABLE | (wanted & MCA_RCACHE_ACCESS_REMOTE_ATOMIC);
    } else if (ENOMEM != errno && 0 == (wanted & ~MCA_RCACHE_ACCESS_REMOTE_READ)) {
        mr = ibv_reg_mr(hca->device.pd, base, size, 0 == wanted ? 0 : IBV_ACCESS_REMOTE_READ);
    }
    return mr;
}

/* ------------------------------------------------------------------------------------------- *
 * Callbacks of the registration cache
 * ------------------------------------------------------------------------------------------- */

/** Register. On OUT_OF_RESOURCE the cache evicts one unused registration and calls again. */
static int reg_create(void *data, void *base, size_t size, mca_rcache_base_registration_t *super)
{
    mca_btl_umr_hca_t *hca = data;
    mca_btl_umr_reg_t *reg = (mca_btl_umr_reg_t *) super;
    mca_btl_umr_mr_t *mr;

    static uint64_t last_id = 0;

    opal_umrddt_unmaps_look();
    if (size > hca->reg_bound || hca->stats.reg_bytes_now > hca->reg_bound - size) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    mr = OBJ_NEW(mca_btl_umr_mr_t);
    if (NULL == mr) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    mr->hca = hca;
    mr->size = size;
    mr->mr = mr_make(hca, base, size, &super->access_flags);
    if (NULL == mr->mr) {
        int err = errno;

        OBJ_RELEASE(mr);
        hca->reg_refused = ENOMEM == err;
        return ENOMEM == err ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERR_BAD_PARAM;
    }
    mr->reg = reg;
    reg->held = mr;
    reg->mr = mr->mr;
    reg->id = ++last_id;
    reg->mapped = false;
    reg->gpu = false;
    reg->left = false;
    reg->loose_uses = 0;
    reg->handle.rkey = reg->mr->rkey;
    reg->handle.lkey = reg->mr->lkey;
    hca->stats.reg_bytes_now += size;
    ++hca->stats.reg_misses;
    return OPAL_SUCCESS;
}

static int reg_destroy(void *data, mca_rcache_base_registration_t *super)
{
    mca_btl_umr_hca_t *hca = data;
    mca_btl_umr_reg_t *reg = (mca_btl_umr_reg_t *) super;
    mca_btl_umr_mr_t *mr = reg->held;

    hca->events->reg_ends(hca, reg);
    mr->reg = NULL; /* messages in flight through cached keysets hold it until they end */
    mca_btl_umr_topology_forget((uintptr_t) super->base, (uintptr_t) super->bound);
    if (OPAL_UNLIKELY(0 < reg->loose_uses)) {
        reg->left = true;
        return OPAL_ERROR; /* the cache keeps it; mca_btl_umr_loose_put calls again */
    }
    reg->held = NULL;
    reg->mr = NULL;
    OBJ_RELEASE(mr);
    return OPAL_SUCCESS;
}

int mca_btl_umr_memory_start(mca_btl_umr_hca_t *hca)
{
    char name[16];
    mca_rcache_base_resources_t resources = {
        .cache_name = name, /* a cache of its own: caches of one name share evictions */
        .reg_data = hca,
        .sizeof_reg = sizeof(mca_btl_umr_reg_t),
        .register_mem = reg_create,
        .deregister_mem = reg_destroy,
    };
    int hooks;

    snprintf(name, sizeof(name), 0 == hca->index ? "umr" : "umr-%u", hca->index);
    hca->reg_bound = mca_btl_umr_params.reg_cache_size;
    if (0 == hca->reg_bound) {
        size_t machine = (size_t) sysconf(_SC_PHYS_PAGES) * (size_t) opal_getpagesize();

        hca->reg_bound = machine / 2 / ((size_t) opal_process_info.num_local_peers + 1);
    }
    hca->reg_bound = mca_btl_umr_share(hca->reg_bound, 1);
    hca->stats.reg_bytes_now = 0;
    memset(mca_btl_umr.spans, 0, sizeof(mca_btl_umr.spans));

    if (OPAL_SUCCESS != mca_base_framework_open(&opal_rcache_base_framework, 0)) {
        mca_btl_umr_refuse("%s: no registration caches (framework rcache)", hca->device.name);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    hca->rcache = mca_rcache_base_module_create("grdma", hca, &resources);
    if (NULL == hca->rcache) {
        (void) mca_base_framework_close(&opal_rcache_base_framework);
        mca_btl_umr_refuse("%s: no registration cache (rcache/grdma)", hca->device.name);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    /*
     * mpi_leave_pinned is 0, or no hooks on this system. Tested after the creation of the cache,
     * which enables the hooks.
     */
    hooks = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;
    hca->rcache_cacheable = hooks == (hooks & opal_mem_hooks_support_level())
                            && (1 == opal_leave_pinned || opal_leave_pinned_pipeline);
    opal_umrddt_unmaps_open();
    return OPAL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- *
 * Parts
 * ------------------------------------------------------------------------------------------- */

static void memory_drop_parts(mca_btl_umr_memory_t *memory)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    for (size_t i = 0; i < memory->count; ++i) {
        if (memory->gpu && NULL != memory->parts[i].reg) {
            mca_btl_umr_gpu_put(hca, memory->parts[i].reg);
        } else if (OPAL_UNLIKELY(memory->loose) && NULL != memory->parts[i].reg) {
            mca_btl_umr_loose_put(hca, memory->parts[i].reg);
        } else if (NULL != memory->parts[i].reg) {
            (void) hca->rcache->rcache_deregister(hca->rcache, &memory->parts[i].reg->super);
        }
    }
    memory->count = 0;
}

static int part_compare(const void *a, const void *b)
{
    const mca_btl_umr_part_t *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start ? 1 : 0;
}

/** Add memory from @p start to @p end: a new part, or an extension of the last one. */
static bool memory_need(mca_btl_umr_memory_t *memory, uintptr_t start, uintptr_t end, uintptr_t gap)
{
    mca_btl_umr_part_t *last = 0 == memory->count ? NULL : &memory->parts[memory->count - 1];

    /* Most layouts ascend: merging here leaves few parts to sort. */
    if (NULL != last && start >= last->start && start <= last->end + gap) {
        last->end = end > last->end ? end : last->end;
        return true;
    }
    return mca_btl_umr_memory_add(memory, start, end);
}

/**
 * Create the parts: pieces at most @p gap bytes apart are one part. A run of near pieces is handled
 * as a whole, other pieces one by one.
 */
static bool memory_make_parts(mca_btl_umr_memory_t *memory, const opal_iov_cache_layout_t *layout,
                              uintptr_t gap)
{
    uintptr_t page = (uintptr_t) opal_getpagesize();
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    size_t cached = 0;

    memory->count = 0;
    opal_iov_cache_cursor_init(&cursor, layout->form, 0, memory->size);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        uint64_t distance = run.stride < 0 ? 0 - (uint64_t) run.stride : (uint64_t) run.stride;
        uintptr_t start = (uintptr_t) memory->buffer + (uintptr_t) run.offset;
        uintptr_t end = start + run.length;

        if (1 < run.count && distance <= run.length + gap) {
            uintptr_t reach = (uintptr_t) ((run.count - 1) * distance);

            start -= run.stride < 0 ? reach : 0;
            end += run.stride < 0 ? 0 : reach;
            run.count = 1;
        }
        for (; 0 < run.count; --run.count) {
            if (!memory_need(memory, start, end, gap)) {
                return false;
            }
            start += (uintptr_t) run.stride;
            end += (uintptr_t) run.stride;
        }
    }
    qsort(memory->parts, memory->count, sizeof(*memory->parts), part_compare);
    for (size_t i = 1; i < memory->count; ++i) {
        mca_btl_umr_part_t *last = &memory->parts[cached], *part = &memory->parts[i];

        /* Two parts on one page would pin it twice. */
        if (part->start <= last->end + gap || (part->start & ~(page - 1)) <= last->end) {
            last->end = part->end > last->end ? part->end : last->end;
        } else {
            memory->parts[++cached] = *part;
        }
    }
    memory->count = 0 == memory->count ? 0 : cached + 1;
    return true;
}

/** Bytes of the pages from start to end. */
static uint64_t page_bytes(uintptr_t start, uintptr_t end)
{
    uint64_t page = (uint64_t) opal_getpagesize();

    return ((end + page - 1) & ~(page - 1)) - (start & ~(page - 1));
}

/** Bytes of the pages of all parts. */
static uint64_t memory_bytes(const mca_btl_umr_memory_t *memory)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < memory->count; ++i) {
        bytes += page_bytes(memory->parts[i].start, memory->parts[i].end);
    }
    return bytes;
}

/** Register the whole range, or find a registration with these rights. */
static int register_range(mca_btl_umr_hca_t *hca, uintptr_t start, uintptr_t end, int32_t access,
                          mca_btl_umr_reg_t **reg)
{
    uint32_t flags = hca->rcache_cacheable ? 0 : MCA_RCACHE_FLAGS_CACHE_BYPASS;
    mca_rcache_base_registration_t *found = NULL;
    uint64_t misses = hca->stats.reg_misses;
    int rc = hca->rcache->rcache_register(hca->rcache, (void *) start, end - start, flags, access,
                                          &found);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    *reg = (mca_btl_umr_reg_t *) found;
    if (misses == hca->stats.reg_misses) {
        ++hca->stats.reg_hits;
    }
    return OPAL_SUCCESS;
}

static int memory_register_parts(mca_btl_umr_memory_t *memory)
{
    mca_btl_umr_hca_t *hca = memory->hca;
    int32_t access = MCA_BTL_UMR_REMOTE == memory->role ? MCA_BTL_UMR_REG_WRITABLE : 0;

    if (memory_bytes(memory) > hca->reg_bound) {
        /* Not passed to the cache, which would evict everything for an impossible request. */
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; i < memory->count; ++i) {
        mca_btl_umr_part_t *part = &memory->parts[i];
        int rc = register_range(hca, part->start, part->end, access, &part->reg);

        if (OPAL_SUCCESS != rc) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}

/** One part from the lowest to the highest byte, if the cached extent allows it. */
static bool memory_whole(mca_btl_umr_memory_t *memory, const opal_iov_cache_layout_t *layout)
{
    const mca_btl_umr_span_t *span = &mca_btl_umr.spans[layout->id % MCA_BTL_UMR_SPANS];
    int64_t lb = layout->lb, ub = layout->ub;

    if (span->layout_id == layout->id && span->size == memory->size) {
        lb = span->lb;
        ub = span->ub;
    } else if ((uint64_t) (ub - lb) > 4 * layout->size + mca_btl_umr_params.reg_gap) {
        return false;
    }
    memory->count = 0;
    return mca_btl_umr_memory_add(memory, (uintptr_t) memory->buffer + (uintptr_t) lb,
                                  (uintptr_t) memory->buffer + (uintptr_t) ub);
}

/** The pieces are one part: cache the extent. */
static void memory_remember(const mca_btl_umr_memory_t *memory,
                            const opal_iov_cache_layout_t *layout)
{
    mca_btl_umr_span_t *span = &mca_btl_umr.spans[layout->id % MCA_BTL_UMR_SPANS];

    if (1 == memory->count) {
        span->layout_id = layout->id;
        span->size = memory->size;
        span->lb = (int64_t) (memory->parts[0].start - (uintptr_t) memory->buffer);
        span->ub = (int64_t) (memory->parts[0].end - (uintptr_t) memory->buffer);
    }
}

/** Release it with its registrations. Lock held. */
static void memory_recycle(mca_btl_umr_memory_t *memory)
{
    memory_drop_parts(memory);
    mca_btl_umr_memory_put(memory);
}

/** Message, once: such messages use another protocol from now on. */
static void report_bound(mca_btl_umr_hca_t *hca, uint64_t needed)
{
    static bool reported = false;

    if (!reported) {
        reported = true;
        opal_show_help("help-btl-umr.txt", "reg bound", true, opal_process_info.nodename,
                       (unsigned long long) needed, (unsigned long long) hca->reg_bound);
    }
}

/** As report_bound, for a limit of the system. */
static void report_refused(mca_btl_umr_hca_t *hca, uint64_t needed)
{
    static bool reported = false;
    struct rlimit limit;
    char text[64] = "unknown";

    if (reported) {
        return;
    }
    reported = true;
    if (0 == getrlimit(RLIMIT_MEMLOCK, &limit)) {
        if (RLIM_INFINITY == limit.rlim_cur) {
            snprintf(text, sizeof(text), "unlimited");
        } else {
            snprintf(text, sizeof(text), "%llu bytes", (unsigned long long) limit.rlim_cur);
        }
    }
    opal_show_help("help-btl-umr.txt", "reg refused", true, opal_process_info.nodename,
                   (unsigned long long) needed, (unsigned long long) hca->stats.reg_bytes_now,
                   text);
}

int mca_btl_umr_memory_register_at(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                                   void *buffer, const opal_iov_cache_layout_t *layout,
                                   uint64_t size, mca_btl_umr_memory_t **result)
{
    mca_btl_umr_hca_t *hca = NULL == endpoint ? mca_btl_umr_first() : endpoint->hca;
    mca_btl_umr_memory_t *memory;
    int rc = OPAL_ERR_BAD_PARAM;

    if (MCA_BTL_UMR_ROLE_MAX <= role || NULL == layout || NULL == result || 0 == size
        || size > layout->size) {
        return OPAL_ERR_BAD_PARAM;
    }

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    memory = mca_btl_umr_memory_take(hca, role, buffer, layout, size);
    if (NULL == memory) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    hca->reg_refused = false;

    /*
     * Coarse to fine: few registrations are cheap, but only the touched pages must exist and be
     * within the limit.
     */
    if (memory_whole(memory, layout)) {
        rc = memory_register_parts(memory);
    }
    if (OPAL_SUCCESS != rc) {
        memory_drop_parts(memory);
        rc = memory_make_parts(memory, layout, mca_btl_umr_params.reg_gap)
                 ? memory_register_parts(memory)
                 : OPAL_ERR_OUT_OF_RESOURCE;
        if (OPAL_SUCCESS == rc) {
            memory_remember(memory, layout);
        }
    }
    if (OPAL_SUCCESS != rc && 1 < layout->iov_count) {
        memory_drop_parts(memory);
        rc = memory_make_parts(memory, layout, 0) ? memory_register_parts(memory)
                                                  : OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (OPAL_ERR_OUT_OF_RESOURCE == rc && memory_bytes(memory) > hca->reg_bound) {
        report_bound(hca, memory_bytes(memory));
    } else if (OPAL_ERR_OUT_OF_RESOURCE == rc && hca->reg_refused) {
        report_refused(hca, memory_bytes(memory));
    }

    if (OPAL_SUCCESS == rc) {
        *result = memory;
    } else {
        memory_recycle(memory);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

int mca_btl_umr_memory_register(mca_btl_umr_role_t role, void *buffer,
                                const opal_iov_cache_layout_t *layout, uint64_t size,
                                mca_btl_umr_memory_t **result)
{
    return mca_btl_umr_memory_register_at(NULL, role, buffer, layout, size, result);
}

void mca_btl_umr_memory_release(mca_btl_umr_memory_t *memory)
{
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    memory_recycle(memory);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

int mca_btl_umr_memory_pin(void *base, size_t size, int32_t access, mca_btl_umr_reg_t **reg)
{
    mca_btl_umr_hca_t *hca = mca_btl_umr_first();
    uint64_t bytes = page_bytes((uintptr_t) base, (uintptr_t) base + size);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    hca->reg_refused = false;
    if (bytes > hca->reg_bound) {
        report_bound(hca, bytes);
    } else {
        rc = register_range(hca, (uintptr_t) base, (uintptr_t) base + size, access, reg);
        if (OPAL_ERR_OUT_OF_RESOURCE == rc && hca->reg_refused) {
            report_refused(hca, bytes);
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return rc;
}

void mca_btl_umr_memory_unpin(mca_btl_umr_reg_t *reg)
{
    mca_btl_umr_hca_t *hca = mca_btl_umr_first();
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    (void) hca->rcache->rcache_deregister(hca->rcache, &reg->super);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

void mca_btl_umr_memory_stop(mca_btl_umr_hca_t *hca)
{
    opal_list_item_t *item;

    /* The cache cannot drop registrations in use. */
    while (!opal_list_is_empty(&hca->memories)) {
        memory_recycle((mca_btl_umr_memory_t *) opal_list_get_first(&hca->memories));
    }
    while (NULL != (item = opal_list_remove_first(&hca->memories_idle))) {
        OBJ_RELEASE(item);
    }
    mca_btl_umr_gpu_stop(hca);
    if (NULL != hca->rcache) {
        opal_umrddt_unmaps_close();
        (void) mca_rcache_base_module_destroy(hca->rcache);
        hca->rcache = NULL;
        (void) mca_base_framework_close(&opal_rcache_base_framework);
    }
}
