/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Minimum use of resources: its values and its check. */

#include "pvars.h"
#include "soak.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of umrddt's performance variables those that say how much there is now. */
#define VARIABLES 64

typedef struct floor_t {
    uint64_t descriptors;
    uint64_t heap;     /* bytes that malloc has given out */
    uint64_t held;     /* bytes of these that umrddt's components have, if failing.c reports it */
    uint64_t mappings; /* lines of /proc/self/maps */
    uint64_t resident; /* bytes; for the eye */
    uint64_t variable[VARIABLES];
} floor_t;

static struct {
    char name[64];
    MPI_T_pvar_handle handle;
    uint64_t bound; /* up to which it may rise; 0: not at all */
} variables[VARIABLES];

/* Caches may fill up, late, too, as far as their parameters say: of one, or of two together; or of
 * so many things of as many bytes at most as this test has in one allocation. */
#define ALLOCATION (1 << 20)
static const struct {
    const char *name, *parameter;
    uint64_t each;
} bounds[] = {
    {"reg_bytes", "btl_umr_reg_cache_size", 1},
    {"keysets_kept", "btl_umr_key_cache", 1},
    {"mkeys_now", "btl_umr_mkeys_max", 1},
    {"mkeys_now", "btl_umr_long_mkeys", 1},
    {"mkeys_long_now", "btl_umr_long_mkeys", 1},
    {"layout_bytes", "pml_umrddt_layout_cache_size", 1},
    {"ipc_open", "pml_umrddt_ipc_imports", 1},
    {"ipc_open_bytes", "pml_umrddt_ipc_imports", ALLOCATION},
    {"gpu_list_bytes", "pml_umrddt_gpu_list_cache", 1},
    {"gpu_graphs", "pml_umrddt_gpu_graphs", 1},
};
static int variable_count = -1;
static MPI_T_pvar_session session;

static floor_t *floors;
static size_t floor_count, floor_room;

static void variables_open(void)
{
    int provided, count = 0;

    variable_count = 0;
    MPI_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_OK(MPI_T_pvar_session_create(&session));
    MPI_OK(MPI_T_pvar_get_num(&count));
    for (int i = 0; i < count && VARIABLES > variable_count; ++i) {
        char name[64], text[512];
        int name_length = sizeof(name), text_length = sizeof(text), verbosity, class, bind,
            readonly;
        int continuous, atomic, elements;
        MPI_Datatype type;
        MPI_T_enum values;

        if (MPI_SUCCESS
                != MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &values,
                                       text, &text_length, &bind, &readonly, &continuous, &atomic)
            || MPI_T_PVAR_CLASS_LEVEL != class || 0 != strncmp(name, "pml_umrddt_", 11)) {
            continue;
        }
        MPI_OK(MPI_T_pvar_handle_alloc(session, i, NULL, &variables[variable_count].handle,
                                       &elements));
        CHECK(1 == elements && sizeof(name) >= strlen(name));
        strcpy(variables[variable_count].name, name + 11);
        for (size_t j = 0; j < sizeof(bounds) / sizeof(bounds[0]); ++j) {
            if (0 == strcmp(bounds[j].name, name + 11)) {
                variables[variable_count].bound +=
                    bounds[j].each * (uint64_t) pvars_parameter(bounds[j].parameter, 0);
            }
        }
        ++variable_count;
    }
}

static uint64_t lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t lines = 0;
    int byte;

    CHECK(NULL != file);
    while (EOF != (byte = fgetc(file))) {
        lines += '\n' == byte;
    }
    fclose(file);
    return lines;
}

static uint64_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0, now = 0;

    CHECK(NULL != file && 2 == fscanf(file, "%lu %lu", &pages, &now));
    fclose(file);
    return (uint64_t) now * (uint64_t) sysconf(_SC_PAGESIZE);
}

static uint64_t descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint64_t count = 0;

    CHECK(NULL != directory);
    while (NULL != readdir(directory)) {
        ++count;
    }
    closedir(directory);
    return count - 3; /* the directory's own, and two names */
}

static uint64_t held(void)
{
    void *found = dlsym(RTLD_DEFAULT, "umrddt_failing_held");
    uint64_t (*ask)(void);

    memcpy(&ask, &found, sizeof(ask)); /* (a function is no object) */
    return NULL == ask ? 0 : ask();
}

void soak_look(void)
{
    struct mallinfo2 heap;
    floor_t *now;

    if (0 > variable_count) {
        variables_open();
    }
    if (floor_count == floor_room) {
        /* in large steps: it is in the heap, too */
        floor_room = 0 == floor_room ? 4096 : 2 * floor_room;
        floors = realloc(floors, floor_room * sizeof(*floors));
        CHECK(NULL != floors);
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    now = &floors[floor_count++];
    now->descriptors = descriptors();
    now->held = held();
    now->mappings = lines_of("/proc/self/maps");
    now->resident = resident();
    for (int i = 0; i < variable_count; ++i) {
        unsigned long long value = 0;

        MPI_OK(MPI_T_pvar_read(session, variables[i].handle, &value));
        now->variable[i] = value;
    }
    heap = mallinfo2();
    now->heap = heap.uordblks + heap.hblkhd - floor_room * sizeof(*floors);
    mpitest_alive();
}

/* The highest of a number in floors from .. to - 1. */
static uint64_t highest(size_t offset, size_t from, size_t to)
{
    uint64_t most = 0;

    for (size_t i = from; i < to; ++i) {
        uint64_t value = *(const uint64_t *) ((const char *) &floors[i] + offset);

        most = value > most ? value : most;
    }
    return most;
}

/* What has a bound may rise up to it, late, too, and never be above. */
static int check_growth(const char *what, size_t offset, uint64_t slack, uint64_t bound)
{
    uint64_t first = highest(offset, 0, floor_count / 2);
    uint64_t second = highest(offset, floor_count / 2, floor_count);
    bool above = 0 < bound && (first > bound || second > bound);
    bool rose = 0 == bound && second > first + slack;
    char of[40] = "";

    if (0 < bound) {
        snprintf(of, sizeof(of), " of %llu", (unsigned long long) bound);
    }
    if (rose || above || mpitest.verbose || (0 == mpitest.rank && 0 < second)) {
        printf("%s: rank %d: %-24s %12llu, then %12llu%s%s\n", mpitest.name, mpitest.rank, what,
               (unsigned long long) first, (unsigned long long) second, of,
               rose    ? "  IT ROSE"
               : above ? "  ABOVE ITS BOUND"
                       : "");
    }
    return rose || above;
}

/* How a number came to where it is: the highest of each eighth of the run. */
static void curve(const char *what, size_t offset)
{
    if (0 != mpitest.rank || 64 > floor_count) {
        return;
    }
    printf("%s: rank 0: %-24s", mpitest.name, what);
    for (size_t i = 0; i < 8; ++i) {
        printf(" %llu", (unsigned long long) highest(offset, i * floor_count / 8,
                                                     (i + 1) * floor_count / 8));
    }
    printf(", by eighths\n");
}

void soak_check(size_t slack, size_t kept)
{
    size_t heap = slack + kept * (floor_count - floor_count / 2);
    int rose = 0, all;

    CHECK(4 <= floor_count);
    rose += check_growth("descriptors", offsetof(floor_t, descriptors), 0, 0);
    rose += check_growth("heap, bytes", offsetof(floor_t, heap), heap, 0);
    curve("heap, bytes", offsetof(floor_t, heap));
    /* (what is known of layouts on GPUs is in it, and fills late) */
    rose += check_growth("of umrddt, bytes", offsetof(floor_t, held),
                         NULL == getenv("UMRDDT_TEST_MEMORY") ? slack / 16 : slack, 0);
    curve("of umrddt, bytes", offsetof(floor_t, held));
    /* arenas of threads, and pieces of mappings that were one; an allocation of the software GPUs
     * is two of its own, and some are imported, or kept, at any time */
    rose += check_growth("mappings", offsetof(floor_t, mappings),
                         NULL == getenv("UMRDDT_TEST_MEMORY") ? 24 : 64, 0);
    (void) check_growth("resident, bytes", offsetof(floor_t, resident), UINT64_MAX / 2, 0);
    for (int i = 0; i < variable_count; ++i) {
        rose += check_growth(variables[i].name,
                             offsetof(floor_t, variable) + (size_t) i * sizeof(uint64_t), 0,
                             variables[i].bound);
        MPI_T_pvar_handle_free(session, &variables[i].handle);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_OK(MPI_Allreduce(&rose, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("%s: %zu cycles\n", mpitest.name, floor_count);
    }
    fflush(stdout);
    if (0 < all) {
        mpitest_fail(__FILE__, __LINE__, "what a process holds rose from cycle to cycle");
    }
    free(floors);
    floors = NULL;
}

bool soak_goes_on(long cycles)
{
    const char *seconds = getenv("UMRDDT_SOAK_SECONDS");
    static struct timespec begin;
    struct timespec now;
    int on;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (0 == begin.tv_sec) {
        begin = now;
    }
    on = NULL == seconds ? cycles < mpitest.ops
                         : now.tv_sec - begin.tv_sec < atol(seconds) || 8 > cycles;
    MPI_OK(MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return on;
}

void soak_leak(void)
{
    static char *volatile lost;

    if (mpitest_has("leak-descriptor")) {
        CHECK(0 <= dup(0));
    } else if (mpitest_has("leak-memory")) {
        lost = malloc(128 << 10);
        CHECK(NULL != lost);
        lost[0] = 1;
    }
}
