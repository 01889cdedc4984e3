/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * UCX calls the dynamic loader for its own mmap once, at the first use. Without bistro hooks this
 * must happen before UCX's handler of unmap events uses mmap under a lock: the loader allocates.
 * UCX 1.23 calls it when it is loaded.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_unmaps.h"

#include "gpu_test.h"

typedef void *(*find_fn_t)(void *handle, const char *name);
typedef void *(*map_fn_t)(void *address, size_t size, int prot, int flags, int fd, off_t offset);

/* Calls of the loader for mmap. */
static int lookups;

/* In place of libc's, also for UCX. */
void *dlsym(void *handle, const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static find_fn_t next;

    for (size_t i = 0; NULL == next && i < sizeof(versions) / sizeof(versions[0]); ++i) {
        *(void **) &next = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    lookups += 0 == strcmp(name, "mmap");
    return NULL == next ? NULL : next(handle, name);
}

/* A mapping by UCX, without events. */
static void map(map_fn_t mmap_of_ucx)
{
    void *memory = mmap_of_ucx(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(MAP_FAILED != memory);
    CHECK(0 == munmap(memory, 4096));
}

int main(void)
{
    map_fn_t mmap_of_ucx;
    void *ucm;
    int before;

    CHECK(0 == setenv("UCX_MEM_MMAP_HOOK_MODE", "reloc", 1)); /* read when libucs is loaded */
    if (NULL == dlopen("libucs.so.0", RTLD_NOW)
        || NULL == (ucm = dlopen("libucm.so.0", RTLD_NOW))) {
        printf("SKIPPED: no UCX\n");
        return 77;
    }
    *(void **) &mmap_of_ucx = dlsym(ucm, "ucm_orig_mmap");
    CHECK(NULL != mmap_of_ucx);
    opal_umrddt_unmaps_open();
    CHECK(0 < lookups); /* else UCX has bistro hooks, and this proves nothing */
    before = lookups;
    map(mmap_of_ucx);
    CHECK(before == lookups);
    opal_umrddt_unmaps_close();
    return 0;
}
