/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The invariants of imports: a table that is right is found to be so, and each thing that is made
 * wrong in it is reported by its name. Compiled with the file under test.
 */

#include "umrddt_gpu_import.c"

#include <stdio.h>

#include "../common/reported.h"

/* Nothing is opened. */
CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine)
{
    (void) engine;
    return NULL;
}

int opal_umrddt_gpu_mapping_get(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_export_t *from,
                                opal_umrddt_gpu_mapping_t **mapping, bool *crowded)
{
    (void) engine;
    *crowded = false;
    *mapping = calloc(1, sizeof(**mapping));
    (*mapping)->address = 4096;
    (*mapping)->size = from->size;
    (*mapping)->imports = 1;
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_mapping_put(opal_umrddt_gpu_mapping_t *mapping)
{
    free(mapping);
}

void opal_umrddt_gpu_mappings_close(void)
{
}

void opal_umrddt_gpu_exports_bound(unsigned most)
{
    (void) most;
}

void opal_umrddt_gpu_exports_close(void)
{
}

/* An import that is used, and two unused ones, newest first. */
static opal_umrddt_gpu_import_t *used, *one, *two;

static opal_umrddt_gpu_import_t *import_of(uint64_t buffer_id)
{
    opal_umrddt_gpu_export_t from = {
        .kind = OPAL_UMRDDT_GPU_EXPORT_MEM_HANDLE, .size = 1000, .buffer_id = buffer_id};
    opal_umrddt_gpu_import_t *import = NULL;

    from.base = 1000 * buffer_id;
    from.check = opal_umrddt_gpu_export_check(&from);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_import(NULL, 3, &from, &import));
    return import;
}

/* With this done to it, what is wrong with it begins with these words; undone, nothing is. */
#define BREAKS(WORDS, DO, UNDO)                         \
    do {                                                \
        BROKEN(opal_umrddt_gpu_ipc_check(), WORDS, DO); \
        UNDO;                                           \
    } while (0)

int main(void)
{
    opal_umrddt_gpu_import_t **place;

    CHECK(NULL == opal_umrddt_gpu_ipc_check());
    used = import_of(7);
    two = import_of(8);
    one = import_of(9);
    opal_umrddt_gpu_import_release(two);
    opal_umrddt_gpu_import_release(one);
    CHECK(newest == one && oldest == two && 2 == unused);

    BREAKS("imports: unused ones are counted", unused++, unused--);
    BREAKS("imports: unused ones are in", unused--, unused++);
    BREAKS("imports: unused ones are counted", unused_bytes++, unused_bytes--);
    BREAKS("imports: unused ones are in", one->users = 1, one->users = 0);
    BREAKS("imports: unused ones are in", two->newer = NULL, two->newer = one);
    BREAKS("imports: unused ones are counted", oldest = one, oldest = two);
    BREAKS("imports: unused ones are counted", used->users = 0, used->users = 1);
    BREAKS("imports: no more stay open", most_unused = 1, most_unused = DEFAULT_IMPORTS);
    BREAKS("imports: each is found by", used->buffer_id = 1007, used->buffer_id = 7);
    BREAKS("imports: each is found by", used->stale = true, used->stale = false);
    BREAKS("imports: each has its mapping", used->mapping->imports = 0, used->mapping->imports = 1);
    place = bucket(3, 9);
    CHECK(one == *place && NULL == one->chain);
    BREAKS("imports: unused ones are counted", *place = NULL, *place = one);

    opal_umrddt_gpu_import_release(used);
    CHECK(NULL == opal_umrddt_gpu_ipc_check());
    opal_umrddt_gpu_ipc_forget(3);
    CHECK(NULL == opal_umrddt_gpu_ipc_check() && 0 == unused);
    printf("%lu checks\n", checks);
    return 0;
}
