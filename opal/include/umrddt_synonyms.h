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
 * Old names of parameters and performance variables. They are accepted for one more release, and
 * ompi_info shows them as deprecated.
 */

#ifndef UMRDDT_SYNONYMS_H
#define UMRDDT_SYNONYMS_H

typedef struct umrddt_synonym_t {
    const char *name; /**< of a parameter: framework_component_name */
    const char *old;  /**< without framework and component */
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

/** Performance variables of pml/umrddt; the names without framework and component. */
static const umrddt_synonym_t umrddt_pvar_synonyms[] = {
    {"handled_sends", "taken_sends"},        {"handled_recvs", "taken_recvs"},
    {"handled_bytes", "taken_bytes"},        {"passed_contiguous", "deferred_contiguous"},
    {"passed_small", "deferred_small"},      {"passed_memory", "deferred_memory"},
    {"passed_peer", "deferred_peer"},        {"passed_other", "deferred_other"},
    {"passed_model", "deferred_model"},      {"probe_sends", "tried_sends"},
    {"declined_sends", "left_sends"},        {"declined_recvs", "left_recvs"},
    {"ipc_done_flags", "ipc_bells"},         {"ipc_info_reqs", "ipc_asks"},
    {"pack_by_hca", "pack_by_card"},         {"rkey_sets_cached", "sets_recalled"},
    {"layouts_cached", "layouts_recalled"},  {"hca_errors", "card_errors"},
    {"hca_write_bytes", "card_write_bytes"},
};

/** Old prefix of the HCA's tuning parameters in a tuning file; now UMRDDT_TUNING_PREFIX. */
#define UMRDDT_TUNING_OLD_PREFIX "card_"
#define UMRDDT_TUNING_PREFIX     "hca_"

#endif /* UMRDDT_SYNONYMS_H */
