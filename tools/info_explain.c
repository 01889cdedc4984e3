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
 * The scheme of messages of a layout, and the reason. The selection is done by
 * common/umrddt_select, with pml/umrddt's descriptions of messages (pml_umrddt_select.c,
 * which is part of this program). They get 64 messages of the layout, one after the
 * other, as at its receiver; nothing is sent. This file replaces the other functions of pml/umrddt
 * that they call.
 */

#include "info.h"

#include "ompi_config.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "bench/layouts.h"
#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_select/umrddt_select_explain.h"
#include "umrddt_compat.h"

#include "ompi/mca/pml/base/base.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

/** Number of messages of the layout for which a scheme is selected. */
#define MESSAGES 64

/** A message at which the scheme changes. */
typedef struct turn_t {
    int message; /**< from 1 */
    mca_pml_umrddt_scheme_id_t scheme_id;
} turn_t;

/** The result for one kind of peer. */
typedef struct decision_t {
    bool near;
    bool declined; /**< the sender passes it through to the base PML */
    unsigned possible;
    double first[MCA_PML_UMRDDT_SCHEMES], later[MCA_PML_UMRDDT_SCHEMES];
    const char *why;
    mca_pml_umrddt_scheme_id_t least; /**< the scheme with the shortest predicted time, of the
                                         possible ones, at the last message */
    turn_t turns[MESSAGES];
    int turn_count;
} decision_t;

mca_pml_umrddt_t mca_pml_umrddt;

static opal_iov_cache_layout_t *from, *to;

/* ---------------------------------------------------------------------------------------------
 * Functions that the selection calls
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *peer,
                              const opal_umrddt_gpu_where_t *where)
{
    return NULL != mca_pml_umrddt.hca && peer->has_hca && mca_pml_umrddt.params.gpu_hca
           && opal_umrddt_gpu_on_device(where);
}

/** Of the sender. Receivers have their own. */
int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count, opal_iov_cache_layout_t **layout)
{
    (void) datatype;
    (void) count;
    OBJ_RETAIN(from);
    *layout = from;
    return OMPI_SUCCESS;
}

mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *comm)
{
    (void) comm;
    return MCA_PML_UMRDDT_PATTERN_NONE;
}

mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank)
{
    (void) comm;
    (void) rank;
    return NULL; /* no message is sent */
}

/* ---------------------------------------------------------------------------------------------
 * Parameters, as the component has registered them
 * ------------------------------------------------------------------------------------------- */

#define MEMBER(name) (((mca_pml_umrddt_params_t *) NULL)->name)
#define PARAMETER(type, name, ...) \
    {"pml_umrddt_" #name, offsetof(mca_pml_umrddt_params_t, name), sizeof(MEMBER(name)),     \
     _Generic(MEMBER(name), char *: true, default: false)},

static const struct {
    const char *name;
    size_t at, size;
    bool is_string; /**< only the model's file is needed, which is read below */
} parameters[] = {MCA_PML_UMRDDT_PARAMS(PARAMETER)};

static char model[4096];

/** @param[in] most  maximum number of elements. @return false: there is no such parameter */
static bool read_parameter(const char *name, int most, void *value)
{
    MPI_T_cvar_handle handle;
    int index, count = 0;
    bool read;

    if (MPI_SUCCESS != MPI_T_cvar_get_index(name, &index)
        || MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        return false;
    }
    read = count <= most && MPI_SUCCESS == MPI_T_cvar_read(handle, value);
    (void) MPI_T_cvar_handle_free(&handle);
    return read;
}

static bool read_parameters(void)
{
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); ++i) {
        char *field = (char *) &mca_pml_umrddt.params + parameters[i].at;
        union {
            int number;
            size_t size;
        } value = {.size = 0};

        if (parameters[i].is_string) {
            continue;
        }
        if (!read_parameter(parameters[i].name, 1, &value)) {
            fprintf(stderr, "umrddt_info: there is no parameter %s\n", parameters[i].name);
            return false;
        }
        if (sizeof(bool) == parameters[i].size) {
            *(bool *) field = 0 != value.number; /* MPI_T has an int for it */
        } else {
            memcpy(field, &value, parameters[i].size);
        }
    }
    /* an empty one is not written */
    mca_pml_umrddt.params.model = model;
    return read_parameter("pml_umrddt_model", (int) sizeof(model) - 1, model);
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

static opal_umrddt_gpu_where_t memory_of(bool gpu)
{
    opal_umrddt_gpu_where_t where;

    memset(&where, 0, sizeof(where));
    where.memory.kind = gpu ? OPAL_UMRDDT_GPU_DEVICE : OPAL_UMRDDT_GPU_HOST;
    where.memory.legacy_ipc = gpu;
    where.memory.buffer_id = gpu ? 1 : 0;
    return where;
}

/** The data that both sides have of each other. */
static void meet(const info_explain_t *what, bool near, opal_proc_t *proc,
                 mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_comm_t *comm)
{
    static const mca_pml_umrddt_pattern_t patterns[2][2] = {
        {MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU, MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU},
        {MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU, MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU}};

    memset(proc, 0, sizeof(*proc));
    memset(peer, 0, sizeof(*peer));
    memset(comm, 0, sizeof(*comm));
    proc->proc_flags = near ? OPAL_PROC_ON_NODE : 0;
    peer->proc = proc;
    peer->capable = true;
    peer->has_hca = what->hca;
    peer->has_gpu = what->from_gpu || what->to_gpu;
    peer->same_host = near;
    comm->scheme = MCA_PML_UMRDDT_SCHEME_AUTO;
    comm->schemes = mca_pml_umrddt.schemes;
    comm->pattern = (int) patterns[what->from_gpu][what->to_gpu];
}

/** can_recv of the schemes. */
static bool permits(void *message, mca_pml_umrddt_scheme_id_t scheme)
{
    mca_pml_umrddt_recv_t *recv = message;

    switch (scheme) {
    case MCA_PML_UMRDDT_SCHEME_IPC:
        return mca_pml_umrddt_ipc_can_recv(recv);
    case MCA_PML_UMRDDT_SCHEME_UMR:
        return mca_pml_umrddt_umr_can_recv(recv);
    case MCA_PML_UMRDDT_SCHEME_DIRECT:
        return mca_pml_umrddt_rdma_can_recv(recv);
    default:
        return mca_pml_umrddt_rule_packs(recv, scheme);
    }
}

/** The scheme that is used after the selection, as in the receiver. */
static mca_pml_umrddt_scheme_id_t scheme_of(mca_pml_umrddt_recv_t *recv, unsigned possible)
{
    recv->candidates = (uint16_t) (recv->rts.schemes & possible & MCA_PML_UMRDDT_BITS_ALL);
    recv->preferred = mca_pml_umrddt.declines ? (uint16_t) MCA_PML_UMRDDT_BIT(recv->scheme) : 0;
    return opal_umrddt_select_next(&recv->candidates, recv->preferred, permits, recv);
}

/** One message. */
static void select_scheme(const info_explain_t *what, int message, mca_pml_umrddt_comm_t *comm,
                          mca_pml_umrddt_peer_t *peer, decision_t *decision)
{
    opal_umrddt_gpu_where_t here = memory_of(what->from_gpu);
    mca_pml_umrddt_scheme_id_t scheme_id;
    mca_pml_umrddt_recv_t recv;

    memset(&recv, 0, sizeof(recv));
    recv.buf = (void *) (uintptr_t) (decision->near ? 1 : 2);
    recv.comm = comm;
    recv.peer = peer;
    recv.layout = to;
    recv.where = memory_of(what->to_gpu);
    recv.total = from->size;
    recv.rts.length = from->size;
    recv.rts.pieces = (uint32_t) from->iov_count;
    recv.rts.write_pieces = (uint32_t) mca_pml_umrddt.caps->write_pieces;
    recv.rts.schemes = mca_pml_umrddt_select_offered(comm, peer, &here, what->to_gpu, from->size);
    recv.rts.address.qpn = what->hca ? htonl(1) : 0;
    if (what->from_gpu && 0 != (MCA_PML_UMRDDT_BITS_PACK & recv.rts.schemes)) {
        recv.rts.schemes |= MCA_PML_UMRDDT_ON_GPU;
    }
    mca_pml_umrddt_select_recv(&recv);
    memcpy(1 == message ? decision->first : decision->later, recv.pair->selection.times,
           sizeof(decision->first));
    decision->possible = recv.pair->possible;
    decision->why = opal_umrddt_explain_reason(mca_pml_umrddt.selections, decision->possible);
    decision->least = (mca_pml_umrddt_scheme_id_t) recv.scheme;
    scheme_id = scheme_of(&recv, decision->possible);
    if (0 == decision->turn_count
        || scheme_id != decision->turns[decision->turn_count - 1].scheme_id) {
        decision->turns[decision->turn_count++] = (turn_t){message, scheme_id};
    }
    recv.scheme = (int) scheme_id;
    mca_pml_umrddt_select_ended(&recv, MPI_SUCCESS);
}

static void check_all(const info_explain_t *what, bool near, decision_t *decision)
{
    opal_umrddt_gpu_where_t here = memory_of(what->from_gpu);
    static mca_pml_umrddt_peer_t peers[2];
    mca_pml_umrddt_peer_t *peer = &peers[near];
    static mca_pml_umrddt_comm_t comm;
    static opal_proc_t proc;

    memset(decision, 0, sizeof(*decision));
    decision->near = near;
    meet(what, near, &proc, peer, &comm);
    decision->declined =
        mca_pml_umrddt.declines && mca_pml_umrddt_select_passes(&comm, peer, &here, false, 1, NULL);
    for (int message = 1; message <= MESSAGES; ++message) {
        select_scheme(what, message, &comm, peer, decision);
    }
}

/** Whether umrddt handles messages of this layout. @return NULL, or the reason why not */
static const char *not_taken(const info_explain_t *what)
{
    static char text[128];
    int kind = what->from_gpu ? MCA_PML_UMRDDT_MEMORY_GPU : MCA_PML_UMRDDT_MEMORY_SYSTEM;

    if (mca_pml_umrddt.params.min_size > from->size) {
        (void) snprintf(text, sizeof(text), "less than pml_umrddt_min_size, %zu bytes",
                        mca_pml_umrddt.params.min_size);
        return text;
    }
    if (0 == (kind & mca_pml_umrddt.params.memory)) {
        return what->from_gpu ? "pml_umrddt_memory is host"
               : what->to_gpu ? "pml_umrddt_memory is gpu, unless mpi_communication_pattern is "
                                "MPI_CPU_TO_GPU"
                              : "pml_umrddt_memory is gpu";
    }
    if (MCA_PML_UMRDDT_SCHEME_BASE == mca_pml_umrddt.params.scheme) {
        return "pml_umrddt_scheme is host";
    }
    if (1 == from->iov_count) {
        if (!what->from_gpu) {
            return "contiguous";
        }
        if (!mca_pml_umrddt.takes_contiguous) {
            return "contiguous: by pml_umrddt_contiguous or pml_umrddt_base_gpu";
        }
        if (mca_pml_umrddt.contiguous_from > from->size) {
            return "contiguous, and less than pml_umrddt_contiguous_min";
        }
    }
    return NULL;
}

/** True if the base PML is given such messages where it can be trusted with the memory. */
static bool left_far(const info_explain_t *what, const decision_t *decision)
{
    return mca_pml_umrddt.declines_far && what->from_gpu && 1 == from->iov_count && !decision->near
           && MCA_PML_UMRDDT_SCHEME_AUTO == mca_pml_umrddt.params.scheme;
}

/* ---------------------------------------------------------------------------------------------
 * Telling
 * ------------------------------------------------------------------------------------------- */

/** @return NULL: it is possible */
static const char *why_not(const info_explain_t *what, const decision_t *decision, int scheme_id)
{
    bool on_hca =
        MCA_PML_UMRDDT_SCHEME_UMR == scheme_id || MCA_PML_UMRDDT_SCHEME_DIRECT == scheme_id;

    if (0 != (decision->possible & 1u << scheme_id)) {
        return NULL;
    }
    if (MCA_PML_UMRDDT_SCHEME_BASE == scheme_id) {
        return "for comparison";
    }
    if (0 == (MCA_PML_UMRDDT_BIT(scheme_id) & mca_pml_umrddt.schemes)) {
        return "excluded by --schemes";
    }
    if (MCA_PML_UMRDDT_SCHEME_IPC == scheme_id) {
        return what->from_gpu ? "the receiver is on a remote node"
                              : "the send buffer is not in GPU memory";
    }
    if (!what->hca && on_hca) {
        return "this machine has no mlx5 device";
    }
    if (!what->hca && MCA_PML_UMRDDT_SCHEME_PACK_GDR == scheme_id
        && (decision->near || MCA_PML_UMRDDT_BASE_GPU_NONE == mca_pml_umrddt.base_gpu)) {
        return "this machine has no mlx5 device, and the base PML gets no GPU memory here";
    }
    if (on_hca) {
        return what->from_gpu && decision->near
                       && 0 != (decision->possible & MCA_PML_UMRDDT_BIT_IPC)
                   ? "not offered where CUDA IPC is possible"
                   : "HCAs must not access GPU memory (pml_umrddt_gpu_hca)";
    }
    if (!what->from_gpu) {
        return what->to_gpu ? "requires an HCA" : "not used between system memory";
    }
    return "less than pml_umrddt_pack_min, or the rules select another packing scheme";
}

static void print_decision(const info_explain_t *what, const decision_t *decision)
{
    printf("to a process on %s node\n  %-12s %12s %12s\n", decision->near ? "the same" : "a remote",
           "predicted, us", "first", "64th");
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        const mca_pml_umrddt_scheme_id_t scheme_id = mca_pml_umrddt_scheme_order[i];
        const char *why = why_not(what, decision, scheme_id);

        printf("  %-13s %12.1f %12.1f%s%s%s\n", mca_pml_umrddt_scheme_names[scheme_id],
               decision->first[scheme_id], decision->later[scheme_id], NULL == why ? "" : "  (",
               NULL == why ? "" : why, NULL == why ? "" : ")");
    }
    if (decision->declined) {
        printf("  passed through to the base PML: predicted fastest\n");
        return;
    }
    if (left_far(what, decision)) {
        printf("  passed through to the base PML if the buffer is cudaMalloc memory of the current "
               "context; otherwise\n");
    }
    printf("  by %s", mca_pml_umrddt_scheme_names[decision->turns[0].scheme_id]);
    for (int i = 1; i < decision->turn_count; ++i) {
        printf(", from message %d on by %s", decision->turns[i].message,
               mca_pml_umrddt_scheme_names[decision->turns[i].scheme_id]);
    }
    printf(": %s\n", decision->why);
    if (!mca_pml_umrddt.declines
        && decision->least != decision->turns[decision->turn_count - 1].scheme_id) {
        printf("  with these tuning parameters %s is predicted fastest\n",
               mca_pml_umrddt_scheme_names[decision->least]);
    }
}

static void json_decision(const info_explain_t *what, const decision_t *decision)
{
    info_json_open(NULL, '{');
    info_json_text("to", decision->near ? "same node" : "remote node");
    info_json_bool("passed_to_base_pml", decision->declined || left_far(what, decision));
    info_json_text("why", decision->why);
    info_json_text("predicted_fastest", mca_pml_umrddt_scheme_names[decision->least]);
    info_json_open("selected", '[');
    for (int i = 0; i < decision->turn_count; ++i) {
        info_json_open(NULL, '{');
        info_json_number("from_message", decision->turns[i].message);
        info_json_text("scheme", mca_pml_umrddt_scheme_names[decision->turns[i].scheme_id]);
        info_json_close('}');
    }
    info_json_close(']');
    info_json_open("predicted", '[');
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        const mca_pml_umrddt_scheme_id_t scheme_id = mca_pml_umrddt_scheme_order[i];

        info_json_open(NULL, '{');
        info_json_text("scheme", mca_pml_umrddt_scheme_names[scheme_id]);
        info_json_real("first_us", decision->first[scheme_id]);
        info_json_real("later_us", decision->later[scheme_id]);
        info_json_bool("possible", 0 != (decision->possible & 1u << scheme_id));
        info_json_text("why_not", why_not(what, decision, scheme_id));
        info_json_close('}');
    }
    info_json_close(']');
    info_json_close('}');
}

static void report_side(const char *what, bool gpu, const opal_iov_cache_layout_t *layout)
{
    printf("  %s %s memory, %zu pieces of %zu bytes\n", what, gpu ? "GPU" : "system",
           layout->iov_count, layout->size / layout->iov_count);
}

static void report(const info_explain_t *what)
{
    const char *left = not_taken(what), *name = what->from->name;
    decision_t decision;

    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("layout", name);
        info_json_text("layout_to", NULL == what->to ? name : what->to->name);
        info_json_number("bytes", (long long) from->size);
        info_json_number("pieces_from", (long long) from->iov_count);
        info_json_number("pieces_to", (long long) to->iov_count);
        info_json_text("tuning", mca_pml_umrddt.selections->source);
        info_json_text("not_handled", left);
        info_json_open("decisions", '[');
    } else {
        printf("%s%s%s: %zu bytes\n", name, NULL == what->to ? "" : " to ",
               NULL == what->to ? "" : what->to->name, from->size);
        report_side("from", what->from_gpu, from);
        report_side("to", what->to_gpu, to);
        printf("tuning: %s\n", mca_pml_umrddt.selections->source);
        if (NULL != left) {
            printf("umrddt passes such messages through to the base PML: %s; otherwise:\n", left);
        } else if (MCA_PML_UMRDDT_SCHEME_AUTO != mca_pml_umrddt.params.scheme) {
            printf("pml_umrddt_scheme selects the protocol; with auto:\n");
        }
    }
    for (int near = 1; 0 <= near; --near) {
        check_all(what, 0 != near, &decision);
        (info_json ? json_decision : print_decision)(what, &decision);
    }
    if (info_json) {
        info_json_close(']');
        info_json_close('}');
    }
}

static bool layout_of(const bench_side_t *side, opal_iov_cache_layout_t **layout)
{
    return OPAL_SUCCESS
           == opal_iov_cache_layout_create(&((ompi_datatype_t *) side->type)->super,
                                           (size_t) side->count, layout);
}

int info_explain(const info_explain_t *what)
{
    static mca_btl_umr_hca_ops_t hca; /* nothing of it is called */
    static mca_btl_umr_caps_t caps = {.write_pieces =
                                          14}; /* the default of the parameter that is read below */
    bench_layout_t sent, received;
    unsigned pieces;
    int provided, status = INFO_BROKEN;

    if (MPI_SUCCESS != MPI_Init(NULL, NULL)
        || MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)) {
        return INFO_BROKEN;
    }
    bench_chosen_create(what->from, &sent);
    bench_chosen_create(NULL == what->to ? what->from : what->to, &received);
    if (sent.send.bytes != received.recv.bytes) {
        fprintf(stderr, "umrddt_info: '%s' has %llu bytes, and '%s' has %llu\n", what->from->name,
                (unsigned long long) sent.send.bytes, what->to->name,
                (unsigned long long) received.recv.bytes);
        status = INFO_USAGE;
    } else if (read_parameters() && layout_of(&sent.send, &from)
               && layout_of(&received.recv, &to)) {
        if (!what->hca) {
            caps.write_pieces = 1;
        } else if (read_parameter("btl_umr_write_pieces", 1, &pieces)) {
            caps.write_pieces = pieces;
        }
        mca_pml_umrddt.hca = what->hca ? &hca : NULL;
        mca_pml_umrddt.caps = &caps;
        mca_pml_umrddt.schemes |= (uint16_t) what->candidates;
        mca_pml_umrddt.host_component = mca_pml_base_selected_component;
        mca_pml_umrddt_base_gpu_open();
        mca_pml_umrddt.received = opal_umrddt_received_new();
        mca_pml_umrddt_eager_open();
        mca_pml_umrddt_select_open(true);
        if (NULL != mca_pml_umrddt.received && NULL != mca_pml_umrddt.selections) {
            report(what);
            status = INFO_USABLE;
        }
        mca_pml_umrddt_select_close();
        free(mca_pml_umrddt.received);
        OBJ_RELEASE(from);
        OBJ_RELEASE(to);
    }
    bench_layout_destroy(&received);
    bench_layout_destroy(&sent);
    fflush(stdout);
    MPI_T_finalize();
    MPI_Finalize();
    return status;
}
