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
 * MCA parameters.
 */

/*
 * They are registered twice. The first time is when the component is opened, so that ompi_info
 * lists them. The second is when the PML is enabled, because the pml framework deregisters the
 * variables of every component that it does not select. It never selects this one (see
 * pml_umrddt_component.c).
 */

#include "ompi_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/show_help.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "umrddt_params.h"

/** Default of pml_umrddt_max_keys. */
#define DEFAULT_KEYS 256u
#define MOST_KEYS    65536u

static const mca_base_var_enum_value_t memory_values[] = {
    {MCA_PML_UMRDDT_MEMORY_GPU, "gpu"},
    {MCA_PML_UMRDDT_MEMORY_SYSTEM, "host"},
    {MCA_PML_UMRDDT_MEMORY_ALL, "all"},
    {0, NULL},
};

static const mca_base_var_enum_value_t scheme_values[] = {
    {MCA_PML_UMRDDT_SCHEME_AUTO, "auto"},
    {MCA_PML_UMRDDT_SCHEME_UMR, "umr"},
    {MCA_PML_UMRDDT_SCHEME_DIRECT, "direct"},
    {MCA_PML_UMRDDT_SCHEME_IPC, "ipc"},
    {MCA_PML_UMRDDT_SCHEME_PACK_GDR, "pack-gdr"},
    {MCA_PML_UMRDDT_SCHEME_PACK_STAGED, "pack-staged"},
    {MCA_PML_UMRDDT_SCHEME_PACK_HOST, "pack-host"},
    {MCA_PML_UMRDDT_SCHEME_BASE, "host"},
    {0, NULL},
};

static const mca_base_var_enum_value_t gpu_base_values[] = {
    {MCA_PML_UMRDDT_GPU_BASE_AUTO, "auto"},
    {MCA_PML_UMRDDT_GPU_BASE_YES, "yes"},
    {MCA_PML_UMRDDT_GPU_BASE_NO, "no"},
    {0, NULL},
};

static const mca_base_var_enum_value_t contiguous_values[] = {
    {MCA_PML_UMRDDT_CONTIGUOUS_AUTO, "auto"},
    {MCA_PML_UMRDDT_CONTIGUOUS_DEFER, "defer"},
    {MCA_PML_UMRDDT_CONTIGUOUS_TAKE, "take"},
    {0, NULL},
};

void mca_pml_umrddt_param(const char *name, const char *help, mca_base_var_type_t type,
                          mca_base_var_enum_t *values, mca_base_var_info_lvl_t level, void *storage)
{
    umrddt_params_register(&mca_pml_umrddt_component.pmlm_version, name, help, type, values, level,
                           storage);
}

void mca_pml_umrddt_param_limited(const char *name, mca_base_var_type_t type,
                                  mca_base_var_info_lvl_t level, void *storage, const char *help,
                                  ...)
{
    char text[512]; /* Open MPI copies it */
    va_list limits;

    va_start(limits, help);
    (void) vsnprintf(text, sizeof(text), help, limits);
    va_end(limits);
    mca_pml_umrddt_param(name, text, type, NULL, level, storage);
}

int mca_pml_umrddt_scheme_named(const char *name)
{
    for (size_t i = 0; NULL != scheme_values[i].string; ++i) {
        if (0 == strcmp(name, scheme_values[i].string)) {
            return scheme_values[i].value;
        }
    }
    return -1;
}

int mca_pml_umrddt_params_register(void)
{
    static bool defaults = false;
    mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    mca_base_var_enum_t *values = NULL;

    if (!defaults) {
        params->min_size = 1024;
        params->memory = MCA_PML_UMRDDT_MEMORY_GPU;
        params->scheme = MCA_PML_UMRDDT_SCHEME_AUTO;
        params->base_gpu_param = MCA_PML_UMRDDT_GPU_BASE_AUTO;
        params->contiguous = MCA_PML_UMRDDT_CONTIGUOUS_AUTO;
        params->contiguous_min = 0;
        params->chunk_floor = 4096;
        params->max_keys = DEFAULT_KEYS;
        params->mkey_cache = true;
        params->key_sets = 32;
        params->layouts = 16;
        params->writes = 16;
        params->stripe = 0;
        params->run = 65536;
        params->layout_cache = 64u << 20;
        params->reuse = 1;
        params->explain = false;
        params->stats = false;
        params->refusals = 60;
        params->check_pattern = false;
        params->check = 0;
        defaults = true;
    }

    params->base_pml = "";
    mca_pml_umrddt_param(
        "base_pml",
        "PML that matches messages and carries everything umrddt does not take (ob1, ucx, "
        "cm, ...); empty: the one Open MPI would have chosen without umrddt",
        MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, &params->base_pml);
    mca_pml_umrddt_param_limited(
        "min_size", MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_3, &params->min_size,
        "Smallest message, in bytes, that umrddt handles. Values below "
        "%u count as %u",
        (unsigned) MCA_PML_UMRDDT_ENVELOPE, (unsigned) MCA_PML_UMRDDT_ENVELOPE);

    if (OPAL_SUCCESS == mca_base_var_enum_create("pml_umrddt_memory", memory_values, &values)) {
        mca_pml_umrddt_param(
            "memory", "Whose messages are taken: those in gpu memory, in system memory, or all",
            MCA_BASE_VAR_TYPE_INT, values, OPAL_INFO_LVL_2, &params->memory);
        OBJ_RELEASE(values);
    }
    if (OPAL_SUCCESS == mca_base_var_enum_create("pml_umrddt_scheme", scheme_values, &values)) {
        mca_pml_umrddt_param(
            "scheme",
            "How a message goes: umr (mkeys on both sides), direct (without mkeys: a write for each "
            "run of the receiver's layout), ipc (a GPU of the receiver reads the sender's GPU "
            "memory, on one host), pack-gdr (packed by GPUs, in chunks, between whose memory the "
            "HCAs write), pack-staged (the same, through system memory, by the HCA or the "
            "base PML), pack-host (the same, packed in system memory), auto (ipc from GPU memory on "
            "one host, packed where that or an HCA cannot be; direct where a side has "
            "no mkeys, or where it is the cheaper way for a first message), or host (everything by the base PML). The info "
            "key of the same name does it for one communicator",
            MCA_BASE_VAR_TYPE_INT, values, OPAL_INFO_LVL_3, &params->scheme);
        OBJ_RELEASE(values);
    }
    if (OPAL_SUCCESS == mca_base_var_enum_create("pml_umrddt_base_gpu", gpu_base_values, &values)) {
        mca_pml_umrddt_param(
            "base_gpu",
            "Which buffers in GPU memory the base PML is given as they are: yes (all that umrddt "
            "does not handle), no (none), or auto (none, unless this Open MPI, and UCX if the base "
            "PML is ucx, have CUDA; then contiguous memory of cudaMalloc whose context is current, "
            "of messages to and from other nodes and of messages within collectives, in programs "
            "that do not use MPI_THREAD_MULTIPLE)",
            MCA_BASE_VAR_TYPE_INT, values, OPAL_INFO_LVL_3, &params->base_gpu_param);
        OBJ_RELEASE(values);
    }
    if (OPAL_SUCCESS
        == mca_base_var_enum_create("pml_umrddt_contiguous", contiguous_values, &values)) {
        mca_pml_umrddt_param(
            "contiguous",
            "Contiguous messages in GPU memory: defer (to the base PML), take, or auto "
            "(unless contiguous_min says from where on: take, but to other nodes defer those that "
            "the base PML may be given; defer if base_gpu is yes)",
            MCA_BASE_VAR_TYPE_INT, values, OPAL_INFO_LVL_3, &params->contiguous);
        OBJ_RELEASE(values);
    }
    mca_pml_umrddt_param(
        "contiguous_min",
        "Smallest contiguous message in GPU memory, in bytes, that umrddt takes, where it takes "
        "such messages: from where on it was measured to be faster than the base PML. 0: as "
        "min_size",
        MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, &params->contiguous_min);
    mca_pml_umrddt_param(
        "stripe",
        "Smallest message, in bytes, that goes over several pairs of HCAs at once, where both "
        "processes have several (btl_umr_max_hcas): each pair carries a part of it. 0: none; each "
        "message goes by the pair that is nearest to the sender's buffer",
        MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_4, &params->stripe);
    mca_pml_umrddt_param(
        "chunk_floor",
        "Smallest chunk, in bytes, that a receiver proposes in order to make both sides' windows "
        "agree; below it, windows are split instead",
        MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_6, &params->chunk_floor);
    mca_pml_umrddt_param_limited(
        "max_keys", MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &params->max_keys,
        "Keys that one CTS may name (%u bytes each), 1 to %u; a message that needs more goes in "
        "rounds",
        (unsigned) sizeof(mca_pml_umrddt_wire_key_t), MOST_KEYS);
    mca_pml_umrddt_param(
        "mkey_cache",
        "Keep the keys of a message mapped for the next one with the same datatype and "
        "buffer. 0: map them for each message",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, &params->mkey_cache);
    mca_pml_umrddt_param_limited(
        "key_sets", MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &params->key_sets,
        "Sets of at most %u keys of each receiver that a sender remembers, so that a CTS need not "
        "name them again, 0 to %u",
        MCA_PML_UMRDDT_SET_KEYS, MCA_PML_UMRDDT_MAX_PLACES);
    mca_pml_umrddt_param(
        "direct_writes",
        "Where both ways are open, the first message of a datatype and buffer goes without "
        "mkeys if that takes so many writes at most. 0: not for this reason",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, &params->writes);
    mca_pml_umrddt_param(
        "direct_run",
        "The same, if so many bytes lie together on the average, however many writes it "
        "takes. 0: not for this reason",
        MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_6, &params->run);
    mca_pml_umrddt_param_limited(
        "direct_layouts", MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &params->layouts,
        "Layouts (of at most %u KiB, flattened) of each receiver that a sender remembers, so that "
        "they travel once, 0 to %u; and with ipc, of each sender that a receiver remembers",
        MCA_PML_UMRDDT_KEPT_FLAT >> 10, MCA_PML_UMRDDT_MAX_PLACES);
    mca_pml_umrddt_param("layout_cache_size", "Bound on the memory of cached layouts, in bytes",
                         MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_5, &params->layout_cache);
    mca_pml_umrddt_gpu_params_register();
    mca_pml_umrddt_param(
        "refusal_timeout",
        "Seconds that the base PML may refuse to send what another process waits for, for reasons "
        "other than that it is short of something: then the message fails, or, where the other "
        "process cannot be told, the job ends. 0: it is asked for ever",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_8, &params->refusals);
    mca_pml_umrddt_param(
        "check_pattern",
        "See whether what the info key mpi_communication_pattern asserts is true, and say so "
        "if it is not; a build with --enable-debug always does. Costs the query that the "
        "key is there to spare",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, &params->check_pattern);
    mca_pml_umrddt_param(
        "check",
        "For tests: look in one of so many passes of progress, and at the end, whether lists, "
        "counters and states of messages agree, and end the process where they do not. 0: never",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_9, &params->check);
    params->model = "";
    mca_pml_umrddt_param(
        "model",
        "File of figures of this machine, by which auto chooses: what umrddt_tune wrote. Empty: the "
        "user's or the system's for this hardware, if there is one; none: auto goes by its rules; "
        "defaults: figures of no particular machine",
        MCA_BASE_VAR_TYPE_STRING, NULL, OPAL_INFO_LVL_3, &params->model);
    mca_pml_umrddt_param(
        "reuse",
        "With figures: how many messages a datatype and buffer are expected to serve, "
        "at least, so that what has to be made for them is spread over as many",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, &params->reuse);
    mca_pml_umrddt_param(
        "explain",
        "Print for each new pair of layouts which schemes are possible, what is predicted "
        "of each, which is chosen and why, and what was observed",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3, &params->explain);
    mca_pml_umrddt_param("stats", "Print this process's counters at finalize",
                         MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_3, &params->stats);

    if (MCA_PML_UMRDDT_ENVELOPE > params->min_size) {
        /* a message must not be smaller than its envelope: the base PML receives the envelope into
         * the receive buffer, and the data must overwrite all of it */
        params->min_size = MCA_PML_UMRDDT_ENVELOPE;
    }
    if (1 > params->max_keys || MOST_KEYS < params->max_keys) {
        opal_show_help("help-mca-pml-umrddt.txt", "max-keys", true, params->max_keys, MOST_KEYS,
                       DEFAULT_KEYS);
        params->max_keys = DEFAULT_KEYS;
    }
    if (MCA_PML_UMRDDT_MAX_PLACES < params->key_sets) {
        opal_show_help("help-mca-pml-umrddt.txt", "key-sets", true, params->key_sets,
                       MCA_PML_UMRDDT_MAX_PLACES);
        params->key_sets = MCA_PML_UMRDDT_MAX_PLACES;
    }
    if (MCA_PML_UMRDDT_MAX_PLACES < params->layouts) {
        opal_show_help("help-mca-pml-umrddt.txt", "direct-layouts", true, params->layouts,
                       MCA_PML_UMRDDT_MAX_PLACES);
        params->layouts = MCA_PML_UMRDDT_MAX_PLACES;
    }
    umrddt_params_unknown("pml_umrddt_");
    return OMPI_SUCCESS;
}
