/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Imports by (engine, peer, BUFFER_ID). Several of them may share one mapping: CUDA counts handles,
 * and a process may have had another number before.
 *
 * Two locks. "lock" protects the tables and is held shortly. "driver_lock" is taken first. It is
 * held while the driver opens and closes, which takes long, and by all functions that insert or
 * remove mappings. So no handle is opened twice or while it is closed. A lookup, and a release
 * within the limits, take only the first one, and only if MPI has threads.
 */

#include "umrddt_gpu_ipc_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "umrddt_compat.h"

#include "opal/constants.h"

#define BUCKETS         256
#define DEFAULT_IMPORTS 64
#define DEFAULT_BYTES   ((size_t) 4 << 30)

struct opal_umrddt_gpu_import_t {
    opal_umrddt_gpu_mapping_t *mapping;
    opal_umrddt_gpu_engine_t *engine;
    uint64_t peer;
    uint64_t buffer_id;
    uint64_t base; /* in the owner */
    uint64_t size;
    unsigned users;
    bool stale; /* not in the table: closed when it is unused */
    opal_umrddt_gpu_import_t *chain;
    opal_umrddt_gpu_import_t *newer; /* in the list of unused imports */
    opal_umrddt_gpu_import_t *older;
};

opal_umrddt_gpu_ipc_stats_t opal_umrddt_gpu_ipc_counts;

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_umrddt_gpu_import_t *table[BUCKETS];
static opal_umrddt_gpu_import_t *newest;
static opal_umrddt_gpu_import_t *oldest;
static uint64_t unused;
static uint64_t unused_bytes;
static unsigned most_unused = DEFAULT_IMPORTS;
static size_t most_bytes = DEFAULT_BYTES;

static void count(uint64_t *counter)
{
    opal_umrddt_gpu_ipc_count(counter, 1);
}

static opal_umrddt_gpu_import_t **bucket(uint64_t peer, uint64_t buffer_id)
{
    uint64_t mixed = (buffer_id ^ peer << 40 ^ peer >> 24) * 0x9e3779b97f4a7c15ull;

    return &table[(mixed >> 40) % BUCKETS];
}

/* ---- with the lock ---- */

static void set_unused(opal_umrddt_gpu_import_t *import)
{
    import->newer = NULL;
    import->older = newest;
    *(NULL == newest ? &oldest : &newest->newer) = import;
    newest = import;
    unused++;
    unused_bytes += import->size;
}

static void set_used(opal_umrddt_gpu_import_t *import)
{
    *(NULL == import->newer ? &newest : &import->newer->older) = import->older;
    *(NULL == import->older ? &oldest : &import->older->newer) = import->newer;
    unused--;
    unused_bytes -= import->size;
}

static inline opal_umrddt_gpu_import_t *lookup(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                                               uint64_t buffer_id)
{
    opal_umrddt_gpu_import_t *import;

    for (import = *bucket(peer, buffer_id); NULL != import; import = import->chain) {
        if (buffer_id == import->buffer_id && peer == import->peer && engine == import->engine) {
            break;
        }
    }
    return import;
}

static void use(opal_umrddt_gpu_import_t *import)
{
    if (0 == import->users) {
        set_used(import);
    }
    import->users++;
}

/* Remove it from the table; unused ones go to the list @p gone. */
static void take_out(opal_umrddt_gpu_import_t *import, opal_umrddt_gpu_import_t **gone)
{
    opal_umrddt_gpu_import_t **at = bucket(import->peer, import->buffer_id);

    while (import != *at) {
        at = &(*at)->chain;
    }
    *at = import->chain;
    import->stale = true;
    if (0 == import->users) {
        set_used(import);
        import->chain = *gone;
        *gone = import;
    }
}

typedef bool (*which_t)(const opal_umrddt_gpu_import_t *import, const void *what);

static void take_out_each(which_t which, const void *what, opal_umrddt_gpu_import_t **gone)
{
    int i;

    for (i = 0; i < BUCKETS; i++) {
        opal_umrddt_gpu_import_t *import = table[i];

        while (NULL != import) {
            opal_umrddt_gpu_import_t *next = import->chain;

            if (which(import, what)) {
                take_out(import, gone);
            }
            import = next;
        }
    }
}

static bool beyond(void)
{
    return unused > most_unused || unused_bytes > most_bytes;
}

/* ---- with the driver's lock ---- */

static void free_import(opal_umrddt_gpu_import_t *import)
{
    opal_umrddt_gpu_mapping_put(import->mapping);
    free(import);
}

static void free_list(opal_umrddt_gpu_import_t *list)
{
    while (NULL != list) {
        opal_umrddt_gpu_import_t *next = list->chain;

        free_import(list);
        list = next;
    }
}

/* Evict the least recently used ones beyond the limits. */
static void trim(void)
{
    opal_umrddt_gpu_import_t *gone = NULL;

    OPAL_THREAD_LOCK(&lock);
    while (beyond()) {
        take_out(oldest, &gone);
    }
    OPAL_THREAD_UNLOCK(&lock);
    free_list(gone);
}

static void close_each(which_t which, const void *what)
{
    opal_umrddt_gpu_import_t *gone = NULL;

    OPAL_THREAD_LOCK(&lock);
    take_out_each(which, what, &gone);
    OPAL_THREAD_UNLOCK(&lock);
    free_list(gone);
}

/* New memory at the address of older memory shows that the owner has freed the older one. */
typedef struct place_t {
    uint64_t peer;
    uint64_t buffer_id;
    uint64_t base;
    uint64_t size;
} place_t;

static bool replaced(const opal_umrddt_gpu_import_t *import, const void *what)
{
    const place_t *location = what;

    return location->peer == import->peer && location->buffer_id != import->buffer_id
           && location->base < import->base + import->size
           && import->base < location->base + location->size;
}

static bool of_engine(const opal_umrddt_gpu_import_t *import, const void *what)
{
    return what == import->engine && 0 == import->users;
}

static bool of_peer(const opal_umrddt_gpu_import_t *import, const void *what)
{
    return OPAL_UMRDDT_GPU_ALL_PEERS == *(const uint64_t *) what
           || *(const uint64_t *) what == import->peer;
}

static int make(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                const opal_umrddt_gpu_export_t *from, opal_umrddt_gpu_import_t **out)
{
    const place_t location = {peer, from->buffer_id, from->base, from->size};
    opal_umrddt_gpu_import_t *import = calloc(1, sizeof(*import));
    bool crowded = false;
    int rc;

    if (NULL == import) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    close_each(replaced, &location);
    rc = opal_umrddt_gpu_mapping_get(engine, from, &import->mapping, &crowded);
    if (OPAL_SUCCESS != rc && crowded) {
        /* Unused imports may occupy the address range. */
        close_each(of_engine, engine);
        rc = opal_umrddt_gpu_mapping_get(engine, from, &import->mapping, &crowded);
    }
    if (OPAL_SUCCESS != rc) {
        free(import);
        return rc;
    }
    import->engine = engine;
    import->peer = peer;
    import->buffer_id = from->buffer_id;
    import->base = from->base;
    import->size = from->size;
    import->users = 1;
    OPAL_THREAD_LOCK(&lock);
    import->chain = *bucket(peer, from->buffer_id);
    *bucket(peer, from->buffer_id) = import;
    OPAL_THREAD_UNLOCK(&lock);
    *out = import;
    return OPAL_SUCCESS;
}

static bool is_same(const opal_umrddt_gpu_import_t *import, const opal_umrddt_gpu_export_t *from)
{
    return import->base == from->base && import->size == from->size
           && 0 == memcmp(import->mapping->uuid, from->uuid, sizeof(from->uuid))
           && 0 == memcmp(import->mapping->handle, from->handle, sizeof(from->handle));
}

/* The contents are untrusted input. */
static bool makes_sense(uint64_t peer, const opal_umrddt_gpu_export_t *from)
{
    return OPAL_UMRDDT_GPU_ALL_PEERS != peer && 0 != from->buffer_id && 0 != from->base
           && 0 != from->size && from->size <= UINT64_MAX - from->base
           && OPAL_UMRDDT_GPU_EXPORT_MEM_HANDLE == from->kind
           && opal_umrddt_gpu_export_check(from) == from->check;
}

/* ---- the interface ---- */

/* FNV-1a: each step is a bijection, so one changed byte is always detected. */
uint32_t opal_umrddt_gpu_export_check(const opal_umrddt_gpu_export_t *export)
{
    opal_umrddt_gpu_export_t copy = *export;
    const unsigned char *bytes = (const unsigned char *) &copy;
    uint32_t sum = UINT32_C(2166136261);
    size_t i;

    copy.check = 0;
    for (i = 0; i < sizeof(copy); i++) {
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    }
    return sum;
}

void opal_umrddt_gpu_ipc_params(const opal_umrddt_gpu_ipc_params_t *params)
{
    OPAL_THREAD_LOCK(&lock);
    most_unused = params->imports;
    most_bytes = params->import_bytes;
    OPAL_THREAD_UNLOCK(&lock);
    opal_umrddt_gpu_exports_bound(params->exports);
}

int opal_umrddt_gpu_import_find(opal_umrddt_gpu_engine_t *engine, uint64_t peer, uint64_t buffer_id,
                                opal_umrddt_gpu_import_t **import)
{
    opal_umrddt_gpu_import_t *found;

    OPAL_THREAD_LOCK(&lock);
    found = lookup(engine, peer, buffer_id);
    if (NULL != found) {
        use(found);
    }
    OPAL_THREAD_UNLOCK(&lock);
    if (NULL == found) {
        return OPAL_ERR_NOT_FOUND;
    }
    count(&opal_umrddt_gpu_ipc_counts.hits);
    *import = found;
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                           const opal_umrddt_gpu_export_t *from, opal_umrddt_gpu_import_t **import)
{
    opal_umrddt_gpu_import_t *gone = NULL;
    opal_umrddt_gpu_import_t *found;
    int rc = OPAL_SUCCESS;

    if (!makes_sense(peer, from)) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&driver_lock);
    OPAL_THREAD_LOCK(&lock);
    found = lookup(engine, peer, from->buffer_id);
    if (NULL != found && !is_same(found, from)) {
        /* Another process has this number now. */
        take_out(found, &gone);
        found = NULL;
    }
    if (NULL != found) {
        use(found);
    }
    OPAL_THREAD_UNLOCK(&lock);
    free_list(gone);
    if (NULL != found) {
        count(&opal_umrddt_gpu_ipc_counts.hits);
        *import = found;
    } else {
        rc = make(engine, peer, from, import);
        if (OPAL_SUCCESS != rc) {
            count(&opal_umrddt_gpu_ipc_counts.refused);
        }
    }
    trim();
    pthread_mutex_unlock(&driver_lock);
    return rc;
}

uint64_t opal_umrddt_gpu_import_address(const opal_umrddt_gpu_import_t *import, uint64_t lowest,
                                        uint64_t end, bool *on_device)
{
    if (NULL != on_device) {
        *on_device = import->mapping->on_device;
    }
    if (0 == import->mapping->address || lowest < import->base || end < lowest
        || end - import->base > import->size) {
        return 0;
    }
    return import->mapping->address + (lowest - import->base);
}

void opal_umrddt_gpu_import_release(opal_umrddt_gpu_import_t *import)
{
    bool last;
    bool stale;
    bool late;

    OPAL_THREAD_LOCK(&lock);
    last = 0 == --import->users;
    stale = import->stale;
    if (last && !stale) {
        set_unused(import);
    }
    late = beyond();
    OPAL_THREAD_UNLOCK(&lock);
    if ((last && stale) || late) {
        pthread_mutex_lock(&driver_lock);
        if (last && stale) {
            free_import(import);
        }
        trim();
        pthread_mutex_unlock(&driver_lock);
    }
}

void opal_umrddt_gpu_ipc_forget(uint64_t peer)
{
    pthread_mutex_lock(&driver_lock);
    close_each(of_peer, &peer);
    pthread_mutex_unlock(&driver_lock);
}

void opal_umrddt_gpu_ipc_close(void)
{
    uint64_t all = OPAL_UMRDDT_GPU_ALL_PEERS;

    pthread_mutex_lock(&driver_lock);
    close_each(of_peer, &all);
    /* Those in use, too: their engine is about to be destroyed. */
    opal_umrddt_gpu_mappings_close();
    pthread_mutex_unlock(&driver_lock);
    opal_umrddt_gpu_exports_close();
}

void opal_umrddt_gpu_ipc_stats(opal_umrddt_gpu_ipc_stats_t *stats)
{
    const uint64_t *from = (const uint64_t *) &opal_umrddt_gpu_ipc_counts;
    uint64_t *to = (uint64_t *) stats;
    size_t i;

    for (i = 0; i < sizeof(*stats) / sizeof(*to); i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
}

/* With the lock. */
static const char *check_unused(void)
{
    const opal_umrddt_gpu_import_t *import, *newer = NULL;
    uint64_t found = 0, bytes = 0;

    for (import = newest; NULL != import; import = import->older) {
        if (0 != import->users || import->stale || newer != import->newer || ++found > unused) {
            return "imports: unused ones are in their list";
        }
        bytes += import->size;
        newer = import;
    }
    if (newer != oldest || found != unused || bytes != unused_bytes) {
        return "imports: unused ones are counted";
    }
    return beyond() ? "imports: no more stay open unused than may" : NULL;
}

/* With the lock. */
static const char *check_table(void)
{
    uint64_t found = 0;

    for (int i = 0; i < BUCKETS; i++) {
        const opal_umrddt_gpu_import_t *import;

        for (import = table[i]; NULL != import; import = import->chain) {
            if (import->stale || &table[i] != bucket(import->peer, import->buffer_id)) {
                return "imports: each is found by its peer and BUFFER_ID";
            }
            if (NULL == import->mapping || 0 == import->mapping->imports) {
                return "imports: each has its mapping, which counts it";
            }
            found += 0 == import->users ? 1 : 0;
        }
    }
    return found == unused ? NULL : "imports: unused ones are counted";
}

const char *opal_umrddt_gpu_ipc_check(void)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&lock);
    wrong = check_unused();
    wrong = NULL == wrong ? check_table() : wrong;
    OPAL_THREAD_UNLOCK(&lock);
    return wrong;
}
