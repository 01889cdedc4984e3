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
 * Where messages are received, as far as senders have learnt; see pml_umrddt_landing.h.
 *
 * An entry is one word (pml_umrddt_pause.h). Threads read and write it without order: what gets
 * lost is a count.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "pml_umrddt_landing.h"
#include "pml_umrddt_pause.h"

#define TABLE_BYTES (MCA_PML_UMRDDT_LANDINGS * sizeof(uint32_t))

static inline uint32_t *find(uint32_t *table, int dst, int tag)
{
    uint64_t both = (uint64_t) (uint32_t) dst << 32 | (uint32_t) tag;

    _Static_assert(256 == MCA_PML_UMRDDT_LANDINGS, "the highest 8 bits of the hash");
    return &table[both * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/** The table, made at the first message that would need it. */
static uint32_t *table_of(mca_pml_umrddt_comm_t *comm)
{
    uint32_t *table = __atomic_load_n(&comm->landings, __ATOMIC_ACQUIRE), *none = NULL;

    if (OPAL_LIKELY(NULL != table)) {
        return table;
    }
    table = calloc(1, TABLE_BYTES);
    if (NULL == table) {
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&comm->landings, &none, table, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        free(table); /* another thread was quicker */
        return none;
    }
    MCA_PML_UMRDDT_COUNT_ADD(peer_table_bytes_now, TABLE_BYTES);
    return table;
}

bool mca_pml_umrddt_landing_try(mca_pml_umrddt_comm_t *comm, int dst, int tag)
{
    uint32_t *table = table_of(comm), *entry, value;

    if (NULL == table) {
        return false;
    }
    entry = find(table, dst, tag);
    value = __atomic_load_n(entry, __ATOMIC_RELAXED);
    if (!mca_pml_umrddt_pause_lasts(value)) {
        return true;
    }
    __atomic_store_n(entry, value - MCA_PML_UMRDDT_PAUSE_ONE, __ATOMIC_RELAXED);
    return false;
}

void mca_pml_umrddt_landing_learn(mca_pml_umrddt_comm_t *comm, int dst, int tag, bool gpu)
{
    uint32_t *table = __atomic_load_n(&comm->landings, __ATOMIC_ACQUIRE), *entry, value;

    if (NULL == table) {
        return;
    }
    entry = find(table, dst, tag);
    value = __atomic_load_n(entry, __ATOMIC_RELAXED);
    __atomic_store_n(entry, mca_pml_umrddt_pause_after(value, !gpu), __ATOMIC_RELAXED);
}

void mca_pml_umrddt_landing_free(mca_pml_umrddt_comm_t *comm)
{
    if (NULL != comm->landings) {
        MCA_PML_UMRDDT_COUNT_ADD(peer_table_bytes_now, -(uint64_t) TABLE_BYTES);
        free(comm->landings);
        comm->landings = NULL;
    }
}
