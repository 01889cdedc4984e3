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
 * Names that parameters and performance variables had before. Open MPI takes the old names for one
 * more release, and ompi_info shows them as deprecated.
 */

#ifndef UMRDDT_SYNONYMS_H
#define UMRDDT_SYNONYMS_H

typedef struct umrddt_synonym_t {
    const char *name; /**< framework_component_name */
    const char *old;  /**< the old name, without framework and component */
} umrddt_synonym_t;

static const umrddt_synonym_t umrddt_param_synonyms[] = {
    {"pml_umrddt_base_pml", "host"},
    {"pml_umrddt_base_gpu", "host_gpu"},
    {"pml_umrddt_system_memory_cache", "host_cache"},
    {"pml_umrddt_gpu_hca", "gpu_card"},
    {"pml_umrddt_pack_hca", "pack_card"},
    {"pml_umrddt_ipc_done_flags", "ipc_bells"},
    {"btl_umr_max_hcas", "max_cards"},
};

#endif /* UMRDDT_SYNONYMS_H */
