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
 * The btl module: start and stop, peers and connections, registrations. The operations are in
 * btl_umr_rdma.c.
 */

#include "opal_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/class/opal_bitmap.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_module.h"
#include "umrddt_help.h"

static mca_btl_umr_module_t *const module = &mca_btl_umr_module;

/**
 * Modex data of a process, numbers in network order. The address of one queue pair for each process
 * of the job follows.
 *
 *   0       4         6       7   8       12
 *   | magic | version | reads | 0 | count | count x (QP number, first PSN)
 */
typedef struct modex_t {
    uint32_t magic;
    uint16_t version;
    uint8_t reads; /**< reads and atomics of one peer that this HCA answers concurrently */
    uint8_t zero;
    uint32_t count;
} modex_t;

_Static_assert(12 == sizeof(modex_t), "the modex data has no padding");
_Static_assert(8 == sizeof(mca_btl_umr_address_t), "an address has no padding");

/*
 * Includes the number of the opening: PMIx keeps the first value of a key, so a module that is
 * opened again would publish queue pairs that do not exist any more.
 */
#define MODEX_KEY      "umrddt.btl.umr.rdma.%u"
#define MODEX_KEY_SIZE 48
#define MODEX_MAGIC    0x554d5252u /* "UMRR" */
#define MODEX_VERSION  1

/* Completions of all peers; requests beyond that are posted later. */
#define MODULE_CQ_SIZE 4096

/* With these flags, and without SEND, bml/r2 uses a btl for one-sided communication only. */
#define MODULE_FLAGS                                                               \
    (MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_FOPS | UMRDDT_BTL_REMOTE_COMPLETION \
     | MCA_BTL_FLAGS_RDMA_FLUSH)

/** Concurrent reads and atomics from this HCA to one peer, or in the other direction. */
static uint8_t reads_at_once(int limit)
{
    return (uint8_t) (1 > limit ? 1 : 128 < limit ? 128 : limit);
}

/* ------------------------------------------------------------------------------------------- *
 * Peers
 * ------------------------------------------------------------------------------------------- */

/** The data that a peer published for this process. False: nothing usable. */
static bool look_up(const opal_process_name_t *name, mca_btl_umr_address_t *address, uint8_t *reads)
{
    uint8_t *found = NULL;
    bool usable = false;
    char key[MODEX_KEY_SIZE];
    size_t size = 0;
    modex_t head;
    int rc;

    snprintf(key, sizeof(key), MODEX_KEY, module->openings);
    OPAL_MODEX_RECV_STRING(rc, key, name, &found, &size);
    if (OPAL_SUCCESS != rc || NULL == found) {
        return false;
    }
    if (sizeof(head) <= size) {
        memcpy(&head, found, sizeof(head));
        usable = MODEX_MAGIC == ntohl(head.magic) && MODEX_VERSION == ntohs(head.version)
                 && 0 < head.reads && module->count == ntohl(head.count)
                 && sizeof(head) + module->count * sizeof(*address) == size;
    }
    if (usable) {
        memcpy(address, found + sizeof(head) + OPAL_PROC_MY_NAME.vpid * sizeof(*address),
               sizeof(*address));
        *reads = head.reads;
    }
    free(found);
    return usable;
}

/** Bring to RTS. @return false: the peer has no module, or is unreachable */
static bool connect_one(struct mca_btl_base_endpoint_t *endpoint)
{
    const mca_btl_umr_device_t *device = &mca_btl_umr_first()->device;
    mca_btl_umr_address_t address;
    mca_btl_umr_route_t route;
    uint8_t reads;
    int err;

    if (!look_up(&endpoint->name, &address, &reads)
        || !mca_btl_umr_route_look_up(&endpoint->name, &route)) {
        return false;
    }
    route.reads_in = reads_at_once(device->attr.max_qp_rd_atom);
    route.reads_out = reads_at_once(device->attr.max_qp_init_rd_atom);
    if (reads < route.reads_out) {
        route.reads_out = reads;
    }
    err = mca_btl_umr_qp_connect(device, endpoint->sq.qp, &route, ntohl(address.qpn),
                                 ntohl(address.psn), ntohl(endpoint->address.psn));
    if (0 != err) {
        MCA_BTL_UMR_LOG(mca_btl_umr_first(), "cannot connect to %s: %s",
                        OPAL_NAME_PRINT(endpoint->name), strerror(err));
    }
    return 0 == err;
}

/**
 * With this parameter pml/ob1 sends its control messages through every btl with put. (The value is
 * not known when the module is opened.)
 */
static bool ob1_uses_all(void)
{
    const bool *value = NULL;
    int var = mca_base_var_find("ompi", "pml", "ob1", "use_all_rdma");

    return 0 <= var && OPAL_SUCCESS == mca_base_var_get_value(var, &value, NULL, NULL)
           && NULL != value && *value;
}

/** @return true if all are connected. Lock held. */
static bool connect_all(void)
{
    if (ob1_uses_all()) {
        opal_show_help("help-btl-umr.txt", "rdma-ob1", true, opal_process_info.nodename);
        return false;
    }
    for (uint32_t i = 0; i < module->count; ++i) {
        if (!connect_one(&module->endpoints[i])) {
            opal_show_help("help-btl-umr.txt", "rdma-half", true, opal_process_info.nodename, i);
            return false;
        }
    }
    return true;
}

/**
 * Connect all processes at once, not only the added ones: a peer that adds this process may write
 * as soon as it has left MPI_Init. All or none: osc/rdma uses a btl that the user names
 * (osc_rdma_btls) without a check of reachability. All processes see the same modex data, so they
 * agree.
 */
static void start(void)
{
    OPAL_THREAD_LOCK(&module->lock);
    if (!module->looked_up) {
        module->connected = connect_all();
        if (!module->connected) {
            module->super.btl_flags = 0;
        }
        module->looked_up = true;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
}

static int add_procs(mca_btl_base_module_t *btl, size_t count, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    (void) btl;
    start();
    for (size_t i = 0; i < count; ++i) {
        const opal_process_name_t *name = &procs[i]->proc_name;

        endpoints[i] = NULL;
        if (module->connected && name->jobid == OPAL_PROC_MY_NAME.jobid
            && name->vpid < module->count) {
            endpoints[i] = &module->endpoints[name->vpid];
            if (NULL != reachable) {
                (void) opal_bitmap_set_bit(reachable, (int) i);
            }
        }
    }
    return OPAL_SUCCESS;
}

/** The queue pairs stay until the module is finalized: a peer may still use them. */
static int del_procs(mca_btl_base_module_t *btl, size_t count, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **endpoints)
{
    (void) btl;
    (void) count;
    (void) procs;
    (void) endpoints;
    return OPAL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- *
 * Memory
 * ------------------------------------------------------------------------------------------- */

static mca_btl_base_registration_handle_t *register_mem(mca_btl_base_module_t *btl,
                                                        struct mca_btl_base_endpoint_t *endpoint,
                                                        void *base, size_t size, uint32_t flags)
{
    mca_btl_umr_reg_t *reg;

    (void) btl;
    (void) endpoint;
    /* Flags that are no access rights mean memory of a GPU. */
    if (0 == size || 0 != (flags & ~(uint32_t) MCA_BTL_REG_FLAG_ACCESS_ANY)
        || OPAL_SUCCESS != mca_btl_umr_memory_pin(base, size, (int32_t) flags, &reg)) {
        return NULL;
    }
    return &reg->handle;
}

static int deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    mca_btl_umr_memory_unpin(container_of(handle, mca_btl_umr_reg_t, handle));
    return OPAL_SUCCESS;
}

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t cbfunc)
{
    (void) btl;
    module->error_cb = cbfunc;
    return OPAL_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- *
 * Open and finalize
 * ------------------------------------------------------------------------------------------- */

/** Undo all steps of open so far. */
static int finalize(mca_btl_base_module_t *btl)
{
    (void) btl;
    for (uint32_t i = 0; NULL != module->endpoints && i < module->count; ++i) {
        mca_btl_umr_qp_destroy(mca_btl_umr_first(), &module->endpoints[i].sq);
        free(module->endpoints[i].ops);
    }
    free(module->endpoints);
    module->endpoints = NULL;
    if (NULL != module->cq) {
        int err = ibv_destroy_cq(module->cq);

        if (0 != err) {
            MCA_BTL_UMR_LOG(mca_btl_umr_first(), "a completion queue cannot be destroyed: %s",
                            strerror(err));
        }
        module->cq = NULL;
    }
    if (module->open) {
        module->open = false;
        OBJ_DESTRUCT(&module->lock);
        mca_btl_umr_hca_ops.fini();
    }
    module->count = 0;
    module->in_flight = 0;
    module->looked_up = module->connected = false;
    module->error_cb = NULL;
    return OPAL_SUCCESS;
}

/** Create the queue pairs, one for each process of the job. 0 or errno. */
static int make_endpoints(void)
{
    const struct ibv_device_attr *attr = &mca_btl_umr_first()->device.attr;

    module->depth = mca_btl_umr_params.rdma_depth;
    if (0 < attr->max_qp_wr && (uint32_t) attr->max_qp_wr < module->depth) {
        module->depth = (uint32_t) attr->max_qp_wr;
    }
    module->cq_size = MODULE_CQ_SIZE;
    if (module->cq_size / module->depth >= module->count) {
        module->cq_size = module->depth * module->count;
    }
    if (0 < attr->max_cqe && (uint32_t) attr->max_cqe < module->cq_size) {
        module->cq_size = (uint32_t) attr->max_cqe;
    }
    module->endpoints = calloc(module->count, sizeof(*module->endpoints));
    if (NULL == module->endpoints) {
        return ENOMEM;
    }
    errno = 0;
    module->cq =
        ibv_create_cq(mca_btl_umr_first()->device.context, (int) module->cq_size, NULL, NULL, 0);
    if (NULL == module->cq) {
        return 0 != errno ? errno : EIO;
    }
    for (uint32_t i = 0; i < module->count; ++i) {
        struct mca_btl_base_endpoint_t *endpoint = &module->endpoints[i];
        int err = mca_btl_umr_qp_create(mca_btl_umr_first(), MCA_BTL_UMR_QP_RDMA, module->cq,
                                        module->depth, 0, NULL, &endpoint->sq);

        if (0 != err) {
            return err;
        }
        endpoint->index = i;
        endpoint->name.jobid = OPAL_PROC_MY_NAME.jobid;
        endpoint->name.vpid = i;
        endpoint->address.qpn = htonl(endpoint->sq.qp->qp_num);
        endpoint->address.psn = htonl(mca_btl_umr_first_psn(endpoint->sq.qp));
    }
    return 0;
}

/** Publish them to the job. */
static int publish(void)
{
    size_t size = sizeof(modex_t) + module->count * sizeof(mca_btl_umr_address_t);
    unsigned char *data = malloc(size);
    char key[MODEX_KEY_SIZE];
    modex_t head = {
        .magic = htonl(MODEX_MAGIC),
        .version = htons(MODEX_VERSION),
        .reads = reads_at_once(mca_btl_umr_first()->device.attr.max_qp_rd_atom),
        .count = htonl(module->count),
    };
    int rc;

    if (NULL == data) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memcpy(data, &head, sizeof(head));
    for (uint32_t i = 0; i < module->count; ++i) {
        memcpy(data + sizeof(head) + i * sizeof(mca_btl_umr_address_t),
               &module->endpoints[i].address, sizeof(mca_btl_umr_address_t));
    }
    snprintf(key, sizeof(key), MODEX_KEY, module->openings);
    OPAL_MODEX_SEND_STRING(rc, UMRDDT_PMIX_GLOBAL, key, data, size);
    free(data);
    return rc;
}

int mca_btl_umr_module_open(void)
{
    const struct ibv_device_attr *attr = &mca_btl_umr_first()->device.attr;
    uint32_t size = 0;
    int err;

    if (module->open) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (!umrddt_job_size(&size) || OPAL_PROC_MY_NAME.vpid >= size) {
        opal_output(0, "btl:umr: btl_umr_rdma: the size of the job is not known");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (mca_btl_umr_params.rdma_peers < size) {
        opal_show_help("help-btl-umr.txt", "rdma-peers", true, opal_process_info.nodename, size,
                       mca_btl_umr_params.rdma_peers);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (OPAL_SUCCESS != mca_btl_umr_hca_ops.init()) {
        return OPAL_ERR_NOT_AVAILABLE; /* it has reported the reason */
    }
    OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
    module->open = true;
    ++module->openings;
    module->count = size;
    if (IBV_ATOMIC_HCA != attr->atomic_cap && IBV_ATOMIC_GLOB != attr->atomic_cap) {
        /* osc/rdma and the framework require get, put and atomics from one btl. */
        opal_show_help("help-btl-umr.txt", "rdma-atomics", true, opal_process_info.nodename);
        goto fail;
    }
    err = make_endpoints();
    if (0 != err) {
        MCA_BTL_UMR_LOG(mca_btl_umr_first(), "btl_umr_rdma: no queue pairs for %u processes: %s",
                        size, strerror(err));
        goto fail;
    }
    if (OPAL_SUCCESS != publish()) {
        MCA_BTL_UMR_LOG(mca_btl_umr_first(), "btl_umr_rdma: %s",
                        "the modex data cannot be published");
        goto fail;
    }
    module->super.btl_flags = MODULE_FLAGS;
    module->super.btl_put_limit = module->super.btl_get_limit =
        mca_btl_umr_first()->device.max_message;
    return OPAL_SUCCESS;

fail:
    (void) finalize(&module->super);
    return OPAL_ERR_NOT_AVAILABLE;
}

mca_btl_umr_module_t mca_btl_umr_module = {
    .super =
        {
            .btl_component = &mca_btl_umr_component.super,
            .btl_flags = MODULE_FLAGS,
            .btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP,
            .btl_exclusivity = MCA_BTL_EXCLUSIVITY_LOW,
            /*
             * osc/rdma uses the btl of the lowest latency that reaches all: prefer any other one.
             */
            .btl_latency = 1000000,
            /* Unknown; not used for sends. */
            .btl_bandwidth = 0,
            .btl_rdma_pipeline_frag_size = (size_t) 1 << 20,
            .btl_registration_handle_size = sizeof(struct mca_btl_base_registration_handle_t),
            .btl_get_alignment = 1,
            .btl_put_alignment = 1,
            .btl_add_procs = add_procs,
            .btl_del_procs = del_procs,
            .btl_finalize = finalize,
            .btl_put = mca_btl_umr_module_put,
            .btl_get = mca_btl_umr_module_get,
            .btl_dump = mca_btl_base_dump,
            .btl_atomic_fop = mca_btl_umr_module_fop,
            .btl_atomic_cswap = mca_btl_umr_module_cswap,
            .btl_register_mem = register_mem,
            .btl_deregister_mem = deregister_mem,
            .btl_register_error = register_error,
            .btl_flush = mca_btl_umr_module_flush,
        },
};
