/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_req.h"

#include <endian.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim_alloc.h"
#include "sim_event.h"

static uint8_t chunk[SIM_CHUNK];
static struct sim_pieces scratch;

static void copy_to_shadow(struct sim_qp *qp, uint16_t index, uint32_t blocks)
{
    uint32_t i;

    for (i = 0; i < blocks; i++) {
        size_t at = ((index + i) & (qp->sq_count - 1)) * (size_t) SIM_BB;

        memcpy(qp->shadow + at, qp->sq + at, SIM_BB);
    }
}

/* Basic blocks of the work request at an index of the live queue. */
static uint32_t blocks_at(const struct sim_qp *qp, uint16_t index)
{
    struct sim_ring live = {qp->sq, qp->sq_count};
    struct mlx5_wqe_ctrl_seg ctrl;
    uint32_t bytes;

    sim_ring_read(&live, index, 0, &ctrl, sizeof(ctrl));
    bytes = (be32toh(ctrl.qpn_ds) & 0x3f) * 16;
    return 0 == bytes ? 1 : (bytes + SIM_BB - 1) / SIM_BB;
}

/* Decode one posted work request. */
static void fetch_one(struct sim_qp *qp, uint16_t backlog)
{
    struct sim_ring ring = sim_req_shadow(qp);
    struct sim_req *req = sim_req_at(qp, qp->tail++);
    uint32_t blocks = blocks_at(qp, qp->sq_fetch);
    const char *why;

    memset(req, 0, sizeof(*req));
    copy_to_shadow(qp, qp->sq_fetch, blocks < qp->sq_count ? blocks : qp->sq_count);
    why = sim_wqe_decode(&ring, qp->sq_fetch, qp->qpn, &req->wqe);
    if (NULL == why && req->wqe.blocks > backlog) {
        why = "a work request that is not there whole";
    }
    if (NULL == why && sim_req_on_wire(req)) {
        why = sim_wqe_length(&ring, &req->wqe, &req->length);
    }
    if (NULL == why && sim_req_is_atomic(req) && SIM_ATOMIC_BYTES != req->length) {
        why = "an atomic of other than 8 bytes";
    }
    qp->sq_fetch = (uint16_t) (qp->sq_fetch + req->wqe.blocks);
    sim.count.wqes++;
    sim.count.wqe_blocks += req->wqe.blocks;
    sim_log(3, "QP 0x%x: work request %u opcode 0x%x, %llu bytes", qp->qpn, req->wqe.index,
            req->wqe.opcode, (unsigned long long) req->length);
    if (NULL != why) {
        qp->fetch_stopped = true;
        sim_req_fail(qp, req, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, SIM_VENDOR_BAD_WQE, why);
    } else if (req->length > 1u << sim.conf.log_max_msg) {
        qp->fetch_stopped = true;
        sim_req_fail(qp, req, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, SIM_VENDOR_BAD_WQE,
                     "too long a message");
    }
    req->packets = (uint32_t) ((req->length + SIM_MTU - 1) / SIM_MTU);
    if (0 == req->packets) {
        req->packets = 1;
    }
}

/*
 * Memory for the requests of a queue pair, while there are any: of many queue pairs few are in use
 * at a time. The content is undefined: fetch_one writes all that is read.
 */
static bool rings_take(struct sim_qp *qp)
{
    if (NULL == qp->req) {
        qp->shadow = sim_alloc_dirty((size_t) qp->sq_count * SIM_BB);
        qp->req = sim_alloc_dirty(qp->sq_count * sizeof(*qp->req));
        if (NULL == qp->shadow || NULL == qp->req) {
            sim_req_rings_give(qp);
            return false;
        }
    }
    return true;
}

void sim_req_rings_give(struct sim_qp *qp)
{
    sim_free(qp->shadow);
    sim_free(qp->req);
    qp->shadow = NULL;
    qp->req = NULL;
}

static bool fetch(struct sim_qp *qp)
{
    uint16_t posted = (uint16_t) be32toh(qp->db[1]);
    bool did = false;

    atomic_thread_fence(memory_order_acquire);
    if (posted != qp->sq_fetch && !qp->fetch_stopped && !rings_take(qp)) {
        sim_log(1, "QP 0x%x: no memory for its requests", qp->qpn);
        sim_qp_fatal(qp);
        return true;
    }
    while (posted != qp->sq_fetch && !qp->fetch_stopped) {
        if ((uint16_t) (posted - qp->sq_done) > qp->sq_count) {
            struct sim_req *req = sim_req_at(qp, qp->tail++);

            memset(req, 0, sizeof(*req));
            req->wqe.index = qp->sq_fetch;
            req->wqe.blocks = 1;
            qp->sq_fetch++;
            qp->fetch_stopped = true;
            sim_req_fail(qp, req, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, SIM_VENDOR_OVERFLOW,
                         "the send queue overflowed");
        } else {
            fetch_one(qp, (uint16_t) (posted - qp->sq_fetch));
        }
        did = true;
    }
    return did;
}

static void made_to_fail(struct sim_qp *qp, struct sim_req *req, uint8_t syndrome)
{
    sim_req_fail(qp, req, syndrome, SIM_VENDOR_INJECTED, "made to fail");
}

/* An event of a device, or of its port. */
static void tell(int device, enum ibv_event_type type)
{
    struct sim_ctx *ctx;
    uint32_t sent = 0;

    for (ctx = sim.ctx; NULL != ctx; ctx = ctx->next) {
        if (device == ctx->device) {
            sim_event_send(ctx, type, IBV_EVENT_DEVICE_FATAL == type ? 0 : 1, &sent);
        }
    }
}

/* A device is gone: nothing is answered, and nothing can be made on it. */
static void remove_device(int device)
{
    struct sim_qp *qp;

    sim.gone |= 1u << device;
    for (qp = sim_qps; NULL != qp; qp = qp->next) {
        if (device == qp->super.ctx->device) {
            sim_qp_error(qp);
        }
    }
    tell(device, IBV_EVENT_DEVICE_FATAL);
}

/* The same as hardware does it: queue pairs stop without a completion. */
static void silence_device(int device)
{
    struct sim_qp *qp;

    sim.gone |= 1u << device;
    for (qp = sim_qps; NULL != qp; qp = qp->next) {
        if (device == qp->super.ctx->device) {
            qp->state = IBV_QPS_RESET;
            qp->waiting = false;
            sim_qp_forget_reads(NULL, qp->qpn, true);
        }
    }
    tell(device, IBV_EVENT_DEVICE_FATAL);
}

static void report_port(int device)
{
    for (int i = 0; i < 2; i++) {
        tell(device, IBV_EVENT_PORT_ERR);
        tell(device, IBV_EVENT_GID_CHANGE);
    }
}

/* Faults at any work request. */
static void breaks(struct sim_qp *qp)
{
    if (NULL != sim_fault(FAULT_kill)) {
        raise(SIGKILL);
    }
    if (NULL != sim_fault(FAULT_device)) {
        remove_device(qp->super.ctx->device);
    }
    if (NULL != sim_fault(FAULT_silent)) {
        silence_device(qp->super.ctx->device);
    }
    if (NULL != sim_fault(FAULT_cq)) {
        sim_cq_fail(qp->send_cq);
    }
    if (NULL != sim_fault(FAULT_port)) {
        report_port(qp->super.ctx->device);
    }
    if (NULL != sim_fault(FAULT_lost)) {
        qp->network = SIM_NETWORK_NONE;
    }
    if (NULL != sim_fault(FAULT_qp)) {
        sim_qp_fatal(qp);
    }
}

/* A write that only tests the connection: of the planned faults only probe counts it. */
static bool is_probe(const struct sim_req *req)
{
    return MLX5_OPCODE_RDMA_WRITE == req->wqe.opcode && 0 == req->length;
}

static void begin(struct sim_qp *qp, struct sim_req *req)
{
    req->begun = true;
    req->psn = qp->next_psn;
    if (sim_req_on_wire(req)) {
        qp->next_psn = (qp->next_psn + req->packets) & 0xffffff;
    }
    if (is_probe(req)) {
        return;
    }
    switch (req->wqe.opcode) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
        sim.count.writes++;
        if (NULL != sim_fault(FAULT_write)) {
            made_to_fail(qp, req, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
        }
        break;
    case MLX5_OPCODE_RDMA_READ:
        sim.count.reads++;
        break;
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
        sim.count.atomics++;
        break;
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_SEND_INVAL:
        sim.count.sends++;
        if (NULL != sim_fault(FAULT_send)) {
            made_to_fail(qp, req, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
        }
        break;
    default:
        break;
    }
    breaks(qp);
}

static void do_umr(struct sim_qp *qp, struct sim_req *req)
{
    struct sim_ring ring = sim_req_shadow(qp);
    struct sim_access access = {qp->pd, qp->qpn, 0};
    const char *why;

    if (NULL != sim_fault(FAULT_umr)) {
        made_to_fail(qp, req, MLX5_CQE_SYNDROME_MW_BIND_ERR);
        return;
    }
    why = sim_wqe_umr(&ring, &req->wqe, &access, &req->mkey);
    if (NULL != why) {
        sim_req_fail(qp, req, MLX5_CQE_SYNDROME_MW_BIND_ERR, SIM_VENDOR_UMR, why);
        return;
    }
    req->done = true;
    /* Never at once, to detect programs that do not wait for the completion. */
    req->ready_at = sim_now() + 1 + sim_delay();
}

static void fill_frame(const struct sim_qp *qp, const struct sim_req *req, struct sim_frame *frame)
{
    memset(frame, 0, sizeof(*frame));
    frame->dst_qpn = qp->dest_qpn;
    frame->src_qpn = qp->qpn;
    frame->dst_port = qp->dest_port;
    frame->src_port = qp->own_port;
    frame->network = qp->network;
    frame->epoch = qp->epoch;
    frame->msg_length = (uint32_t) req->length;
    frame->raddr = req->wqe.raddr;
    frame->rkey = req->wqe.rkey;
    frame->psn = req->psn;
}

/* One frame of a write or send. @return false if it has to wait */
static bool send_frame(struct sim_qp *qp, struct sim_req *req, struct sim_conn *conn)
{
    struct sim_ring ring = sim_req_shadow(qp);
    struct sim_access access = {qp->pd, qp->qpn, 0};
    struct sim_frame frame;
    uint64_t left = req->length - req->sent;

    if (!sim_conn_room(conn)) {
        return false;
    }
    fill_frame(qp, req, &frame);
    frame.type =
        (MLX5_OPCODE_RDMA_WRITE == req->wqe.opcode || MLX5_OPCODE_RDMA_WRITE_IMM == req->wqe.opcode)
            ? SIM_WRITE
            : SIM_SEND;
    frame.length = left < SIM_CHUNK ? (uint32_t) left : SIM_CHUNK;
    frame.offset = (uint32_t) req->sent;
    frame.psn = (req->psn + (uint32_t) (req->sent / SIM_MTU)) & 0xffffff;
    frame.flags = (0 == req->sent ? SIM_FIRST : 0) | (left <= SIM_CHUNK ? SIM_LAST : 0)
                  | (req->wqe.solicited ? SIM_SOLICITED : 0);
    if (MLX5_OPCODE_SEND_IMM == req->wqe.opcode || MLX5_OPCODE_RDMA_WRITE_IMM == req->wqe.opcode) {
        frame.flags |= SIM_IMM;
        frame.imm = req->wqe.imm;
    } else if (MLX5_OPCODE_SEND_INVAL == req->wqe.opcode) {
        frame.flags |= SIM_INVALIDATE;
        frame.imm = req->wqe.imm;
    }
    if (0 < frame.length) {
        const char *why =
            sim_wqe_gather(&ring, &req->wqe, &access, req->sent, frame.length, chunk, &scratch);

        if (NULL != why) {
            sim_req_fail(qp, req, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, SIM_VENDOR_GATHER, why);
            return true;
        }
    }
    sim_conn_send(conn, &frame, chunk);
    sim_count_wire(&sim.count, qp->super.ctx->device, frame.length);
    sim.count.packets += sim_qp_packets(qp, frame.length);
    req->sent += frame.length;
    if (0 != (frame.flags & SIM_LAST)) {
        qp->send++;
    }
    return true;
}

/* A read or an atomic. */
static bool send_fetch(struct sim_qp *qp, struct sim_req *req, struct sim_conn *conn)
{
    const uint64_t operands[SIM_OPERANDS] = {req->wqe.swap, req->wqe.compare};
    struct sim_frame frame;

    if (qp->reads_out >= (0 == qp->max_rd_atomic ? 1u : qp->max_rd_atomic)) {
        return false;
    }
    fill_frame(qp, req, &frame);
    frame.type = SIM_READ;
    frame.flags = SIM_FIRST | SIM_LAST;
    if (sim_req_is_atomic(req)) {
        frame.type = MLX5_OPCODE_ATOMIC_CS == req->wqe.opcode ? SIM_SWAP : SIM_ADD;
        frame.length = sizeof(operands);
    }
    sim_conn_send(conn, &frame, operands);
    sim.count.packets++;
    qp->reads_out++;
    qp->send++;
    return true;
}

/* Work on the request at qp->send. @return false if it has to wait */
static bool transmit_one(struct sim_qp *qp, uint64_t now)
{
    struct sim_req *req = sim_req_at(qp, qp->send);
    struct sim_conn *conn;

    if (req->done) {
        if (0 != req->syndrome) {
            return false;
        }
        qp->send++;
        return true;
    }
    if (!req->begun) {
        if (0 == req->not_before) {
            const struct fault *fault = sim_fault(is_probe(req) ? FAULT_probe : FAULT_late);

            req->not_before = now + sim_delay();
            if (NULL != fault) {
                req->not_before += 1000 * (0 == fault->how ? 1000 : fault->how);
            }
        }
        if (now < req->not_before || (req->wqe.fence && qp->head != qp->send)) {
            return false;
        }
        begin(qp, req);
        return true;
    }
    if (!sim_req_on_wire(req)) {
        if (MLX5_OPCODE_UMR == req->wqe.opcode) {
            do_umr(qp, req);
        } else {
            req->done = true;
        }
        return true;
    }
    sim_req_look_for_breaks(qp);
    if (qp->waiting || req->done) {
        return false;
    }
    conn = sim_wire_to(qp->peer);
    if (NULL == conn) {
        sim_req_retry(qp, sim_req_oldest(qp), "the peer is gone");
        return false;
    }
    return sim_req_fetches(req) ? send_fetch(qp, req, conn) : send_frame(qp, req, conn);
}

static bool transmit(struct sim_qp *qp)
{
    bool did = false;
    uint64_t now;

    if (qp->head == qp->tail) {
        return false;
    }
    now = sim_now();
    sim_req_look_for_breaks(qp);
    if (qp->waiting) {
        if (now < qp->wait_until) {
            return false;
        }
        sim_req_go_on(qp);
        did = true;
    }
    while (qp->send != qp->tail && !qp->waiting && IBV_QPS_RTS == qp->state
           && transmit_one(qp, now)) {
        did = true;
    }
    return did;
}

/* Write one completion. */
static void write_cqe(struct sim_qp *qp, const struct sim_req *req, uint8_t syndrome,
                      uint8_t vendor)
{
    struct sim_cqe cqe = {0};

    cqe.opcode = 0 == syndrome ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR;
    cqe.syndrome = syndrome;
    cqe.vendor = vendor;
    cqe.wqe_opcode = req->wqe.opcode;
    cqe.wqe_counter = req->wqe.index;
    cqe.qpn = qp->qpn;
    cqe.uidx = qp->uidx;
    cqe.bytes = (uint32_t) req->length;
    if (!sim_cq_write(qp->send_cq, &cqe)) {
        sim_qp_fatal(qp);
    }
}

/*
 * The time until the report of a completed request, in nanoseconds. The peer sees a write with
 * immediate data when it has taken the last packet; the acknowledgement has its way yet to go, and
 * may be put off.
 */
static uint64_t put_off(const struct sim_req *req)
{
    return sim_delay()
           + (MLX5_OPCODE_RDMA_WRITE_IMM == req->wqe.opcode ? 1000000ull * sim.conf.late_ms : 0);
}

static bool complete(struct sim_qp *qp)
{
    bool did = false;
    uint64_t now = 0;

    while (qp->head != qp->tail && IBV_QPS_RTS == qp->state) {
        struct sim_req *req = sim_req_at(qp, qp->head);

        if (!req->done) {
            break;
        }
        if (0 != req->ready_at || 0 < sim.conf.delay_us || 0 < sim.conf.late_ms) {
            now = 0 == now ? sim_now() : now;
            if (0 == req->ready_at) {
                req->ready_at = now + put_off(req);
            }
            if (now < req->ready_at) {
                break;
            }
        }
        if (qp->send == qp->head) {
            qp->send++;
        }
        qp->head++;
        qp->sq_done = (uint16_t) (req->wqe.index + req->wqe.blocks);
        did = true;
        if (0 == req->syndrome && MLX5_OPCODE_UMR == req->wqe.opcode) {
            struct sim_key *key = sim_key_find(req->mkey);

            if (NULL != key) {
                sim_key_commit(key, qp->qpn);
            }
        }
        if (0 != req->syndrome || req->wqe.signaled || qp->signal_all) {
            write_cqe(qp, req, req->syndrome, req->vendor);
        }
        if (0 != req->syndrome) {
            sim_qp_error(qp);
        }
    }
    return did;
}

/* In the error state every posted work request completes with a flush error. */
static bool flush(struct sim_qp *qp)
{
    uint16_t posted = (uint16_t) be32toh(qp->db[1]);
    bool did = false;

    atomic_thread_fence(memory_order_acquire);
    for (; qp->head != qp->tail; qp->head++) {
        struct sim_req *req = sim_req_at(qp, qp->head);

        qp->sq_done = (uint16_t) (req->wqe.index + req->wqe.blocks);
        write_cqe(qp, req, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, SIM_VENDOR_FLUSH);
        did = true;
    }
    qp->send = qp->head;
    while (posted != qp->sq_fetch) {
        struct sim_req req = {.wqe = {.index = qp->sq_fetch}};
        uint32_t blocks = blocks_at(qp, qp->sq_fetch);

        if (blocks > (uint16_t) (posted - qp->sq_fetch)) {
            blocks = (uint16_t) (posted - qp->sq_fetch);
        }
        qp->sq_fetch = (uint16_t) (qp->sq_fetch + blocks);
        qp->sq_done = qp->sq_fetch;
        write_cqe(qp, &req, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, SIM_VENDOR_FLUSH);
        did = true;
    }
    return did;
}

bool sim_qp_request(struct sim_qp *qp)
{
    bool did = false;

    if (0 == qp->sq_count) {
        return false;
    }
    if (IBV_QPS_ERR == qp->state) {
        did = flush(qp);
    } else if (IBV_QPS_RTS == qp->state) {
        did = fetch(qp);
        did = transmit(qp) || did;
        did = complete(qp) || did;
    }
    if (did && qp->head == qp->tail) {
        sim_req_rings_give(qp);
    }
    return did;
}

uint64_t sim_qp_wakeup(const struct sim_qp *qp)
{
    const struct sim_req *req;
    uint64_t when = UINT64_MAX;

    if (IBV_QPS_RTS != qp->state || qp->head == qp->tail) {
        return when;
    }
    if (qp->waiting) {
        when = qp->wait_until;
    }
    req = &qp->req[qp->head & (qp->sq_count - 1)];
    if (req->done && req->ready_at < when) {
        when = req->ready_at;
    }
    if (qp->send != qp->tail && !qp->waiting) {
        req = &qp->req[qp->send & (qp->sq_count - 1)];
        if (!req->begun && !req->done && req->not_before < when) {
            when = req->not_before;
        }
    }
    return when;
}
