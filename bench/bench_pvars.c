/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <string.h>

#include "bench_pvars.h"

/* In the order of the enumeration. */
static const char *const names[BENCH_PVAR_COUNT] = {
    "pml_umrddt_handled_sends",
    "pml_umrddt_fallback_sends",
    "pml_umrddt_fallback_recvs",
    "pml_umrddt_keys_used",
    "pml_umrddt_keys_mapped",
    "pml_umrddt_writes_posted",
    "pml_umrddt_control_bytes",
    "pml_umrddt_memory_queries",
    "pml_umrddt_mkeys_created",
    "pml_umrddt_key_entries",
    "pml_umrddt_reg_misses",
    "pml_umrddt_layout_misses",
    "pml_umrddt_rounds",
    "pml_umrddt_sends_direct",
    "pml_umrddt_sends_ipc",
    "pml_umrddt_staged_sends",
    "pml_umrddt_staged_recvs",
    "pml_umrddt_sends_pack_gdr",
    "pml_umrddt_sends_pack_staged",
    "pml_umrddt_sends_pack_host",
    "pml_umrddt_gpu_launches",
    "pml_umrddt_gpu_driver_copies",
    "pml_umrddt_declined_sends",
};

/* Long enough for every name that we look for; longer names are cut and do not match. */
#define NAME_ROOM 64

/* Variables may be of any integer type; the value in 64 bits, and whether the type is one. */
static bool widen(MPI_Datatype type, const void *from, uint64_t *value)
{
    if (MPI_INT == type) {
        int small;

        memcpy(&small, from, sizeof(small));
        *value = (uint64_t) small;
        return 0 <= small;
    }
    if (MPI_UNSIGNED == type) {
        unsigned small;

        memcpy(&small, from, sizeof(small));
        *value = small;
        return true;
    }
    if (MPI_UNSIGNED_LONG == type) {
        unsigned long number;

        memcpy(&number, from, sizeof(number));
        *value = number;
        return true;
    }
    if (MPI_UNSIGNED_LONG_LONG == type || MPI_COUNT == type) {
        unsigned long long number;

        memcpy(&number, from, sizeof(number));
        *value = number;
        return true;
    }
    return false;
}

static void open_one(bench_pvars_t *pvars, int which, int index, MPI_Datatype type, int continuous)
{
    uint64_t probe = 0, value;
    int count;

    if (!widen(type, &probe, &value)
        || MPI_SUCCESS
               != MPI_T_pvar_handle_alloc(pvars->session, index, NULL, &pvars->handles[which],
                                          &count)) {
        return;
    }
    if (1 != count
        || (!continuous
            && MPI_SUCCESS != MPI_T_pvar_start(pvars->session, pvars->handles[which]))) {
        MPI_T_pvar_handle_free(pvars->session, &pvars->handles[which]);
        return;
    }
    pvars->types[which] = type;
    pvars->found[which] = true;
}

void bench_pvars_open(bench_pvars_t *pvars)
{
    int provided, number, i, which;

    memset(pvars, 0, sizeof(*pvars));
    if (MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)) {
        return;
    }
    if (MPI_SUCCESS != MPI_T_pvar_session_create(&pvars->session)) {
        MPI_T_finalize();
        return;
    }
    pvars->open = true;
    if (MPI_SUCCESS != MPI_T_pvar_get_num(&number)) {
        return;
    }
    for (i = 0; i < number; ++i) {
        char name[NAME_ROOM];
        int length = NAME_ROOM, verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum enumeration;

        if (MPI_SUCCESS
            != MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &enumeration, NULL,
                                   NULL, &bind, &readonly, &continuous, &atomic)) {
            continue; /* variables may have gone; their numbers stay */
        }
        for (which = 0; which < BENCH_PVAR_COUNT; ++which) {
            if (!pvars->found[which] && 0 == strcmp(name, names[which])) {
                open_one(pvars, which, i, type, continuous);
            }
        }
    }
}

void bench_pvars_close(bench_pvars_t *pvars)
{
    int which;

    if (!pvars->open) {
        return;
    }
    for (which = 0; which < BENCH_PVAR_COUNT; ++which) {
        if (pvars->found[which]) {
            MPI_T_pvar_handle_free(pvars->session, &pvars->handles[which]);
        }
    }
    MPI_T_pvar_session_free(&pvars->session);
    MPI_T_finalize();
    pvars->open = false;
}

void bench_pvars_read(bench_pvars_t *pvars, uint64_t values[BENCH_PVAR_COUNT])
{
    int which;

    for (which = 0; which < BENCH_PVAR_COUNT; ++which) {
        uint64_t raw = 0;

        values[which] = 0;
        if (pvars->found[which]
            && MPI_SUCCESS == MPI_T_pvar_read(pvars->session, pvars->handles[which], &raw)) {
            (void) widen(pvars->types[which], &raw, &values[which]);
        }
    }
}

bool bench_cvar_read(const char *wanted, uint64_t *value)
{
    int number, i;

    if (MPI_SUCCESS != MPI_T_cvar_get_num(&number)) {
        return false;
    }
    for (i = 0; i < number; ++i) {
        char name[NAME_ROOM];
        int length = NAME_ROOM, verbosity, bind, scope, count;
        MPI_T_cvar_handle handle;
        MPI_T_enum enumeration;
        MPI_Datatype type;
        uint64_t raw = 0;
        bool read;

        if (MPI_SUCCESS
                != MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &enumeration, NULL,
                                       NULL, &bind, &scope)
            || 0 != strcmp(name, wanted) || !widen(type, &raw, value)
            || MPI_SUCCESS != MPI_T_cvar_handle_alloc(i, NULL, &handle, &count)) {
            continue;
        }
        read = 1 == count && MPI_SUCCESS == MPI_T_cvar_read(handle, &raw);
        MPI_T_cvar_handle_free(&handle);
        return read && widen(type, &raw, value);
    }
    return false;
}

/* Whether an enumeration has an item of this name. */
static bool has_item(MPI_T_enum enumeration, const char *value)
{
    char name[NAME_ROOM];
    int length = NAME_ROOM, items = 0, i;

    if (MPI_SUCCESS != MPI_T_enum_get_info(enumeration, &items, name, &length)) {
        return true;
    }
    for (i = 0; i < items; ++i) {
        int number;

        length = NAME_ROOM;
        if (MPI_SUCCESS == MPI_T_enum_get_item(enumeration, i, &number, name, &length)
            && 0 == strcmp(name, value)) {
            return true;
        }
    }
    return false;
}

bool bench_cvar_can_be(const char *wanted, const char *value)
{
    int number, i;

    if (MPI_SUCCESS != MPI_T_cvar_get_num(&number)) {
        return true;
    }
    for (i = 0; i < number; ++i) {
        char name[NAME_ROOM];
        int length = NAME_ROOM, verbosity, bind, scope;
        MPI_T_enum enumeration = MPI_T_ENUM_NULL;
        MPI_Datatype type;

        if (MPI_SUCCESS
                == MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &enumeration, NULL,
                                       NULL, &bind, &scope)
            && 0 == strcmp(name, wanted)) {
            return MPI_T_ENUM_NULL == enumeration || has_item(enumeration, value);
        }
    }
    return true;
}
