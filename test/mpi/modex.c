/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The data that umrddt's components publish is read for a peer at the first message with it: never
 * in MPI_Init, and for no other peer. Each read is a call of PMIx_Get, which this program counts.
 * With thousands of processes, reading all peers would take most of MPI_Init.
 *
 * Each process publishes the same keys in the same order, with and without an HCA: OpenPMIx 5.0.1
 * confuses other ones (docs/notes.rst). The program counts calls of PMIx_Put too.
 */

#include "mpitest.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCKS = 256,
    WORDS = 32, /* of a block; as many are between two blocks */
    ROOM = BLOCKS * 2 * WORDS,
    MOST = 64,  /* processes */
    NAMES = 256 /* bytes of the keys that umrddt publishes */
};

/** The beginning of pmix_proc_t. */
typedef struct name_t {
    char nspace[256];
    uint32_t rank;
} name_t;

int PMIx_Get(const name_t *name, const char *key, const void *infos, size_t info_count,
             void **value);

static long all_gets;           /* calls of Open MPI and its components */
static long umrddt_gets[MOST];  /* of these, for a process's data of umrddt */
static char umrddt_puts[NAMES]; /* the keys that umrddt has published, in order */
static uint64_t out[ROOM], in[ROOM];

int PMIx_Put(uint8_t scope, const char *key, void *value);

/** Instead of the function of PMIx: keeps the key, and calls it. */
int PMIx_Put(uint8_t scope, const char *key, void *value)
{
    int (*next)(uint8_t, const char *, void *) =
        (int (*)(uint8_t, const char *, void *)) dlsym(RTLD_NEXT, "PMIx_Put");

    if (NULL != key && NULL != strstr(key, "umr")) {
        const size_t used = strlen(umrddt_puts);

        (void) snprintf(umrddt_puts + used, sizeof(umrddt_puts) - used, "%s ", key);
    }
    return NULL == next ? -1 : next(scope, key, value);
}

/** Instead of the function of PMIx: counts, and calls it. */
int PMIx_Get(const name_t *name, const char *key, const void *infos, size_t info_count,
             void **value)
{
    int (*next)(const name_t *, const char *, const void *, size_t, void **) =
        (int (*)(const name_t *, const char *, const void *, size_t, void **)) dlsym(RTLD_NEXT,
                                                                                     "PMIx_Get");

    ++all_gets;
    if (NULL != name && NULL != key && NULL != strstr(key, "umr") && MOST > name->rank) {
        ++umrddt_gets[name->rank];
    }
    return NULL == next ? -1 : next(name, key, infos, info_count, value);
}

/** Reads of the data of all processes but one (-1: of all). */
static long gets_but(int rank)
{
    long sum = 0;

    for (int i = 0; i < MOST; ++i) {
        sum += i == rank ? 0 : umrddt_gets[i];
    }
    return sum;
}

/** Of all processes the same. The first one has an HCA, so it publishes what btl/umr does. */
static void compare_keys(void)
{
    char first[NAMES];

    memcpy(first, umrddt_puts, sizeof(first));
    MPI_OK(MPI_Bcast(first, NAMES, MPI_CHAR, 0, MPI_COMM_WORLD));
    CHECK(NULL != strstr(first, "btl.umr.") && NULL != strstr(first, "pml.umrddt."));
    CHECK(0 == strcmp(umrddt_puts, first));
}

static void exchange(MPI_Datatype type, int partner)
{
    MPI_OK(MPI_Sendrecv(out, 1, type, partner, 1, in, 1, type, partner, 1, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    for (int i = 0; i < ROOM; ++i) {
        CHECK_INT(in[i], i % (2 * WORDS) < WORDS ? 1000 * partner + i : 0);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    int partner;
    long first;

    mpitest_init(&argc, &argv, "modex", 1, MPI_THREAD_SINGLE);
    if (0 == all_gets) {
        mpitest_skip("this Open MPI's calls of PMIx cannot be counted");
    }
    CHECK(MOST >= mpitest.size && 0 == mpitest.size % 2);
    CHECK_INT(gets_but(-1), 0);

    partner = mpitest.rank ^ 1;
    MPI_OK(MPI_Type_vector(BLOCKS, WORDS, 2 * WORDS, MPI_UINT64_T, &type));
    MPI_OK(MPI_Type_commit(&type));
    for (int i = 0; i < ROOM; ++i) {
        out[i] = (uint64_t) (1000 * mpitest.rank + i);
    }
    exchange(type, partner);
    first = umrddt_gets[partner];
    /* Rank 1 takes no part in mode "half", and reads nothing. */
    CHECK(0 < first || (mpitest_has("half") && 1 == mpitest.rank));
    exchange(type, partner);
    CHECK_INT(umrddt_gets[partner], first);
    CHECK_INT(gets_but(partner), 0);
    compare_keys();
    MPI_OK(MPI_Type_free(&type));
    return mpitest_finish();
}
