/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* What a profiler is to NVTX: the library that NVTX_INJECTION64_PATH names. It counts the ranges of
 * the domain "umrddt" by name. At the end it appends a line for each name to the file
 * $UMRDDT_TEST_RANGES: name, begun, ended, sum of the payloads. */

#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16

static struct {
    char name[32];
    unsigned long begun, ended, bytes;
} ranges[MOST];
static int names;
static char domain;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The number of a range is that of its name, from 1. */
static nvtxRangeId_t start(nvtxDomainHandle_t where, const nvtxEventAttributes_t *event)
{
    int i = 0;

    if ((void *) where != &domain || NVTX_MESSAGE_TYPE_ASCII != event->messageType
        || NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 != event->payloadType) {
        abort();
    }
    pthread_mutex_lock(&lock);
    while (i < names && 0 != strcmp(ranges[i].name, event->message.ascii)) {
        ++i;
    }
    if (MOST <= i) {
        abort();
    }
    names = names < i + 1 ? i + 1 : names;
    (void) snprintf(ranges[i].name, sizeof(ranges[i].name), "%s", event->message.ascii);
    ++ranges[i].begun;
    ranges[i].bytes += event->payload.ullValue;
    pthread_mutex_unlock(&lock);
    return (nvtxRangeId_t) i + 1;
}

static void end(nvtxDomainHandle_t where, nvtxRangeId_t range)
{
    pthread_mutex_lock(&lock);
    if ((void *) where != &domain || 1 > range || (nvtxRangeId_t) names < range
        || ranges[range - 1].begun <= ranges[range - 1].ended) {
        abort();
    }
    ++ranges[range - 1].ended;
    pthread_mutex_unlock(&lock);
}

static nvtxDomainHandle_t create(const char *name)
{
    return 0 == strcmp(name, "umrddt") ? (nvtxDomainHandle_t) (void *) &domain : NULL;
}

static void __attribute__((destructor)) report(void)
{
    const char *path = getenv("UMRDDT_TEST_RANGES");
    FILE *file = NULL == path ? NULL : fopen(path, "a");

    for (int i = 0; NULL != file && i < names; ++i) {
        fprintf(file, "%s %lu %lu %lu\n", ranges[i].name, ranges[i].begun, ranges[i].ended,
                ranges[i].bytes);
    }
    if (NULL != file) {
        (void) fclose(file);
    }
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;

    if (NULL == callbacks
        || 1 != callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)
        || NVTX_CBID_CORE2_DomainCreateA >= size) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer) start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer) end;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer) create;
    return 1;
}
