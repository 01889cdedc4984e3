/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "pvars.h"

#include "mpitest.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PVARS_MAX] = {
    "pml_umrddt_handled_sends",       "pml_umrddt_handled_recvs",
    "pml_umrddt_handled_bytes",       "pml_umrddt_passed_contiguous",
    "pml_umrddt_passed_small",        "pml_umrddt_passed_memory",
    "pml_umrddt_passed_peer",         "pml_umrddt_passed_other",
    "pml_umrddt_passed_model",        "pml_umrddt_fallback_sends",
    "pml_umrddt_fallback_recvs",      "pml_umrddt_layout_hits",
    "pml_umrddt_layout_misses",       "pml_umrddt_layout_evictions",
    "pml_umrddt_layout_bytes",        "pml_umrddt_keys_mapped",
    "pml_umrddt_keys_plain",          "pml_umrddt_key_entries",
    "pml_umrddt_keyset_hits",         "pml_umrddt_keysets_stale",
    "pml_umrddt_mkeys_created",       "pml_umrddt_writes_posted",
    "pml_umrddt_write_bytes",         "pml_umrddt_control_messages",
    "pml_umrddt_control_bytes",       "pml_umrddt_rounds",
    "pml_umrddt_rkey_sets_cached",    "pml_umrddt_fins_received",
    "pml_umrddt_memory_queries",      "pml_umrddt_sends_umr",
    "pml_umrddt_sends_direct",        "pml_umrddt_layouts_sent",
    "pml_umrddt_layouts_cached",      "pml_umrddt_writes_direct",
    "pml_umrddt_pieces_direct",       "pml_umrddt_direct_layout_bytes",
    "pml_umrddt_reg_misses",          "pml_umrddt_sends_ipc",
    "pml_umrddt_recvs_ipc",           "pml_umrddt_ipc_bytes",
    "pml_umrddt_ipc_done_flags",      "pml_umrddt_ipc_info_reqs",
    "pml_umrddt_ipc_layout_bytes",    "pml_umrddt_ipc_exported",
    "pml_umrddt_ipc_opened",          "pml_umrddt_ipc_open",
    "pml_umrddt_fallback_ipc",        "pml_umrddt_gpu_copies",
    "pml_umrddt_gpu_launches",        "pml_umrddt_gpu_batches",
    "pml_umrddt_gpu_batched",         "pml_umrddt_gpu_graph_launches",
    "pml_umrddt_gpu_graphs",          "pml_umrddt_gpu_driver_copies",
    "pml_umrddt_gpu_shapes_made",     "pml_umrddt_gpu_lists_uploaded",
    "pml_umrddt_staged_sends",        "pml_umrddt_staged_recvs",
    "pml_umrddt_staged_bytes",        "pml_umrddt_gpu_queries",
    "pml_umrddt_gpu_pinned_buffers",  "pml_umrddt_sends_pack_gdr",
    "pml_umrddt_sends_pack_staged",   "pml_umrddt_sends_pack_host",
    "pml_umrddt_recvs_pack",          "pml_umrddt_pack_bytes",
    "pml_umrddt_pack_chunks",         "pml_umrddt_pack_most",
    "pml_umrddt_pack_overlaps",       "pml_umrddt_pack_by_hca",
    "pml_umrddt_pack_registered",     "pml_umrddt_pack_no_gdr",
    "pml_umrddt_gpu_scratch_buffers", "pml_umrddt_stale_replies",
    "pml_umrddt_control_refused",     "pml_umrddt_protocol_errors",
    "pml_umrddt_sends_striped",       "pml_umrddt_gpu_reg_hits",
    "pml_umrddt_gpu_reg_misses",      "pml_umrddt_gpu_reg_refused",
    "pml_umrddt_gpu_reg_stale",       "pml_umrddt_gpu_flush_calls",
    "pml_umrddt_gpu_flush_reads",     "pml_umrddt_endpoints",
    "pml_umrddt_endpoints_rebuilt",   "pml_umrddt_peers_closed",
    "pml_umrddt_maps_rebuilt",        "pml_umrddt_probe_sends",
    "pml_umrddt_declined_sends",      "pml_umrddt_declined_recvs",
    "pml_umrddt_gpu_sync_set",        "pml_umrddt_gpu_sync_waits",
    "pml_umrddt_accelerator_lookups", "pml_umrddt_library_calls",
    "pml_umrddt_pack_device",
};

/** The variable with a value for each HCA. */
static const char hcas_name[] = "pml_umrddt_hca_write_bytes";

static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
static MPI_T_pvar_handle handles[PVARS_MAX];
static bool continuous[PVARS_MAX], is_there[PVARS_MAX], thread_open;
static int opened;

static void open_tools(void)
{
    int provided;

    if (!thread_open) {
        MPI_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        thread_open = true;
    }
}

static MPI_T_pvar_handle hcas = MPI_T_PVAR_HANDLE_NULL;

static void find(int number)
{
    char name[256] = "", text[1024] = "";
    int name_length = sizeof(name), text_length = sizeof(text), verbosity, class, bind, readonly;
    int is_continuous, atomic, count, i;
    MPI_Datatype type;
    MPI_T_enum names_of_values;

    if (MPI_SUCCESS
        != MPI_T_pvar_get_info(number, name, &name_length, &verbosity, &class, &type,
                               &names_of_values, text, &text_length, &bind, &readonly,
                               &is_continuous, &atomic)) {
        return;
    }
    if (0 == strcmp(name, hcas_name) && MPI_T_PVAR_HANDLE_NULL == hcas) {
        CHECK(MPI_UNSIGNED_LONG_LONG == type);
        MPI_OK(MPI_T_pvar_handle_alloc(session, number, NULL, &hcas, &count));
        CHECK_INT(count, PVARS_HCAS);
    }
    for (i = 0; i < PVARS_MAX; ++i) {
        if (0 != strcmp(name, names[i]) || is_there[i]) {
            continue;
        }
        if (MPI_UNSIGNED_LONG_LONG != type) {
            mpitest_fail(__FILE__, __LINE__, "%s is not an unsigned long long", name);
        }
        CHECK_INT(bind, MPI_T_BIND_NO_OBJECT);
        MPI_OK(MPI_T_pvar_handle_alloc(session, number, NULL, &handles[i], &count));
        CHECK_INT(count, 1);
        continuous[i] = 0 != is_continuous;
        if (!continuous[i]) {
            MPI_OK(MPI_T_pvar_start(session, handles[i]));
        }
        is_there[i] = true;
    }
}

int pvars_open(void)
{
    int n = 0, i, found = 0;

    if (0 == opened++) {
        open_tools();
        MPI_OK(MPI_T_pvar_session_create(&session));
        MPI_OK(MPI_T_pvar_get_num(&n));
        for (i = 0; i < n; ++i) {
            find(i);
        }
    }
    for (i = 0; i < PVARS_MAX; ++i) {
        found += is_there[i] ? 1 : 0;
    }
    return found;
}

void pvars_close(void)
{
    int i;

    if (0 < opened && 0 < --opened) {
        return;
    }
    for (i = 0; i < PVARS_MAX; ++i) {
        if (is_there[i]) {
            MPI_OK(MPI_T_pvar_handle_free(session, &handles[i]));
            is_there[i] = false;
        }
    }
    if (MPI_T_PVAR_HANDLE_NULL != hcas) {
        MPI_OK(MPI_T_pvar_handle_free(session, &hcas));
        hcas = MPI_T_PVAR_HANDLE_NULL;
    }
    if (MPI_T_PVAR_SESSION_NULL != session) {
        MPI_OK(MPI_T_pvar_session_free(&session));
    }
    if (thread_open) {
        MPI_OK(MPI_T_finalize());
        thread_open = false;
    }
}

const char *pvars_name(pvars_index_t index)
{
    return names[index];
}

void pvars_read(pvars_t *values)
{
    int i;

    for (i = 0; i < PVARS_MAX; ++i) {
        unsigned long long value = 0;

        if (is_there[i]) {
            MPI_OK(MPI_T_pvar_read(session, handles[i], &value));
        }
        values->value[i] = value;
    }
}

bool pvars_hcas(uint64_t *bytes)
{
    unsigned long long values[PVARS_HCAS] = {0};
    int i;

    if (MPI_T_PVAR_HANDLE_NULL != hcas) {
        MPI_OK(MPI_T_pvar_read(session, hcas, values));
    }
    for (i = 0; i < PVARS_HCAS; ++i) {
        bytes[i] = values[i];
    }
    return MPI_T_PVAR_HANDLE_NULL != hcas;
}

void pvars_subtract(const pvars_t *after, const pvars_t *before, pvars_t *difference)
{
    int i;

    for (i = 0; i < PVARS_MAX; ++i) {
        difference->value[i] = after->value[i] - before->value[i];
    }
}

void pvars_sum(const pvars_t *mine, pvars_t *all)
{
    MPI_OK(
        MPI_Allreduce(mine->value, all->value, PVARS_MAX, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
}

void pvars_print(const char *title, const pvars_t *values)
{
    int i;

    printf("%s:", title);
    for (i = 0; i < PVARS_MAX; ++i) {
        if (0 != values->value[i]) {
            printf(" %s %llu", names[i] + strlen("pml_umrddt_"),
                   (unsigned long long) values->value[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

/* A control variable by name: its handle, datatype, and names of values. */
static bool find_parameter(const char *name, MPI_T_cvar_handle *handle, MPI_Datatype *type,
                           MPI_T_enum *values, int *count)
{
    char text[16];
    int i, length = sizeof(text), verbosity, bind, scope, name_length = 0;

    open_tools();
    if (MPI_SUCCESS != MPI_T_cvar_get_index(name, &i)) {
        return false;
    }
    if (MPI_SUCCESS
        != MPI_T_cvar_get_info(i, NULL, &name_length, &verbosity, type, values, text, &length,
                               &bind, &scope)) {
        return false;
    }
    return MPI_SUCCESS == MPI_T_cvar_handle_alloc(i, NULL, handle, count);
}

const char *pvars_way(const pvars_t *sent)
{
    static const struct {
        pvars_index_t counter;
        const char *name;
    } ways[] = {{PVARS_SENDS_UMR, "umr"},
                {PVARS_SENDS_DIRECT, "direct"},
                {PVARS_SENDS_IPC, "ipc"},
                {PVARS_SENDS_PACK_GDR, "pack-gdr"},
                {PVARS_SENDS_PACK_STAGED, "pack-staged"},
                {PVARS_SENDS_PACK_HOST, "pack-host"},
                {PVARS_HANDLED_SENDS, ""}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
        if (0 < sent->value[ways[i].counter]) {
            return ways[i].name;
        }
    }
    return "host";
}

long pvars_parameter(const char *name, long otherwise)
{
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    MPI_T_enum values;
    int count, size;
    union {
        int as_int;
        long long as_long;
        char space[256];
    } value = {.as_long = 0};

    if (!find_parameter(name, &handle, &type, &values, &count)) {
        return otherwise;
    }
    if (MPI_CHAR == type || 1 != count || MPI_SUCCESS != MPI_Type_size(type, &size)
        || MPI_SUCCESS != MPI_T_cvar_read(handle, &value)) {
        MPI_T_cvar_handle_free(&handle);
        return otherwise;
    }
    MPI_T_cvar_handle_free(&handle);
    return (int) sizeof(int) == size ? value.as_int : (long) value.as_long;
}

bool pvars_parameter_text(const char *name, char *text, size_t size)
{
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    MPI_T_enum values;
    int count, length = (int) size, number;
    bool found = false;
    char *space;

    if (!find_parameter(name, &handle, &type, &values, &count)) {
        return false;
    }
    if (MPI_CHAR == type) {
        space = calloc((size_t) count + 1, 1);
        if (NULL != space && MPI_SUCCESS == MPI_T_cvar_read(handle, space)) {
            snprintf(text, size, "%s", space);
            found = true;
        }
        free(space);
    } else if (MPI_INT == type && MPI_T_ENUM_NULL != values) {
        found = MPI_SUCCESS == MPI_T_cvar_read(handle, &number)
                && MPI_SUCCESS == MPI_T_enum_get_item(values, number, &number, text, &length);
    }
    MPI_T_cvar_handle_free(&handle);
    return found;
}
