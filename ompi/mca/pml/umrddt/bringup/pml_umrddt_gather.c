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
 * Collects a block of bytes of each process of the job at rank 0, during finalize. It uses PMIx and
 * not messages: communicators are gone at this point, and a job of Sessions may never have had one
 * of all processes.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "opal/util/proc.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"

/** Seconds that a process waits for the others. */
#define PATIENCE 5

/** Number of this collection in the process, of the last one whose fence was started, and of the
 * last one that all processes have joined. A late callback of an abandoned collection must not end
 * the present one. */
static uintptr_t collection = 0, started = 0, joined = 0;

/** The fence of the collection "joined" succeeded: every process has published its data. */
static bool complete = false;

static void on_joined(int status, void *which)
{
    complete = 0 == status;
    __atomic_store_n(&joined, (uintptr_t) which, __ATOMIC_RELEASE);
}

/** Start the fence that distributes the data. @return false: it cannot be started */
static bool fence(void)
{
    const uintptr_t last = __atomic_load_n(&joined, __ATOMIC_ACQUIRE);
    bool success;

    if (started != last) {
        return false; /* the last one is not over */
    }
    started = collection;
#if UMRDDT_OPAL_RELEASE >= 500
    static pmix_info_t options[2]; /* in use until the callback */
    static int patience = PATIENCE;
    static bool collect = true;
    pmix_status_t rc;

    PMIX_INFO_LOAD(&options[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&options[1], PMIX_TIMEOUT, &patience, PMIX_INT);
    rc = PMIx_Fence_nb(NULL, 0, options, 2, on_joined, (void *) collection);
    if (PMIX_OPERATION_SUCCEEDED == rc) {
        on_joined(PMIX_SUCCESS, (void *) collection);
        rc = PMIX_SUCCESS;
    }
    success = PMIX_SUCCESS == rc;
#else
    success = NULL != opal_pmix.fence_nb
              && OPAL_SUCCESS == opal_pmix.fence_nb(NULL, 1, on_joined, (void *) collection);
#endif
    if (!success) {
        started = last;
    }
    return success;
}

/** Make the data available to the other processes. */
static bool publish(char *key, void *data, size_t size)
{
    int rc;

    OPAL_MODEX_SEND_STRING(rc, UMRDDT_PMIX_GLOBAL, key, data, size);
#if UMRDDT_OPAL_RELEASE >= 500
    return PMIX_SUCCESS == rc && PMIX_SUCCESS == PMIx_Commit();
#else
    return OPAL_SUCCESS == rc && OPAL_SUCCESS == opal_pmix.commit();
#endif
}

/** Get the data of a process; free them. If it has published them, wait: the fence of Open MPI
 * 5.0.7 leaves the data of other nodes there. @return NULL: they have not arrived at this node */
static void *fetch(const char *key, uint32_t rank, size_t size, bool published)
{
    opal_process_name_t name = {OPAL_PROC_MY_NAME.jobid, rank};
    uint8_t *data = NULL;
    size_t length = 0;
    int rc;

#if UMRDDT_OPAL_RELEASE >= 500
    int patience = PATIENCE;
    pmix_value_t *value = NULL;
    pmix_info_t option;
    pmix_proc_t proc;

    OPAL_PMIX_CONVERT_NAME(&proc, &name);
    if (published) {
        PMIX_INFO_LOAD(&option, PMIX_TIMEOUT, &patience, PMIX_INT);
    } else {
        PMIX_INFO_LOAD(&option, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    }
    rc = PMIx_Get(&proc, key, &option, 1, &value);
    if (PMIX_SUCCESS == rc) {
        data = (uint8_t *) value->data.bo.bytes;
        length = value->data.bo.size;
        value->data.bo.bytes = NULL;
        PMIX_VALUE_RELEASE(value);
    }
#else
    opal_value_t *value = NULL, *immediate = OBJ_NEW(opal_value_t);
    opal_list_t options;

    (void) published;
    OBJ_CONSTRUCT(&options, opal_list_t);
    immediate->key = strdup(OPAL_PMIX_IMMEDIATE);
    immediate->type = OPAL_BOOL;
    immediate->data.flag = true;
    opal_list_append(&options, &immediate->super);
    rc = opal_pmix.get(&name, key, &options, &value);
    OPAL_LIST_DESTRUCT(&options);
    if (OPAL_SUCCESS == rc && NULL != value && OPAL_BYTE_OBJECT == value->type) {
        data = value->data.bo.bytes;
        length = (size_t) value->data.bo.size;
        value->data.bo.bytes = NULL;
    }
    if (NULL != value) {
        OBJ_RELEASE(value);
    }
#endif
    if (OPAL_SUCCESS != rc || size != length) {
        free(data);
        return NULL;
    }
    return data;
}

uint32_t mca_pml_umrddt_gather(void *mine, size_t size, mca_pml_umrddt_gathered_t each,
                               void *context, uint32_t *job)
{
    const uint32_t rank = OPAL_PROC_MY_NAME.vpid;
    struct timespec now, end;
    uint32_t found = 1;
    bool published;
    char key[64];

    if (!umrddt_job_size(job) || rank >= *job) {
        *job = 1;
    }
    each(rank, mine, context);
    if (1 == *job) {
        return found;
    }
    ++collection;
    (void) snprintf(key, sizeof(key), "pml.umrddt.stats.%lu", (unsigned long) collection);
    if (!publish(key, mine, size) || !fence()) {
        return found;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PATIENCE + 1; /* PMIx reports its timeout within that second */
    do {
        /* PMIx has a thread of its own. No opal_progress: the transports have no peers any more. */
        (void) usleep(100);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (
        collection != __atomic_load_n(&joined, __ATOMIC_ACQUIRE)
        && (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec)));
    published = collection == __atomic_load_n(&joined, __ATOMIC_ACQUIRE) && complete;
    for (uint32_t other = 1; 0 == rank && other < *job; ++other) {
        void *theirs = fetch(key, other, size, published);

        if (NULL == theirs) {
            published = false; /* wait only once for data that do not come */
            continue;
        }
        each(other, theirs, context);
        free(theirs);
        ++found;
    }
    return found;
}
