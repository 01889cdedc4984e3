/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_receive.h"

#include <endian.h>
#include <string.h>

#include "sim_alloc.h"
#include "sim_event.h"
#include "sim_gpu.h"

/* A read that is being answered. */
struct read_job {
    struct read_job *next;
    struct sim_conn *conn;
    struct sim_frame request;
    uint32_t sent;
    bool before_error; /* the request behind which the queue pair is in error came later */
};

static struct read_job *jobs;
static struct read_job **jobs_end = &jobs;
static struct sim_pieces scratch;
static uint8_t chunk[SIM_CHUNK];

/* A frame of this type that goes back to where the request came from. */
static void frame_back(struct sim_frame *frame, const struct sim_frame *request, uint8_t type)
{
    memset(frame, 0, sizeof(*frame));
    frame->type = type;
    frame->dst_qpn = request->src_qpn;
    frame->src_qpn = request->dst_qpn;
    frame->dst_port = request->src_port;
    frame->src_port = request->dst_port;
    frame->epoch = request->epoch;
}

static void answer(struct sim_conn *conn, const struct sim_frame *request, uint8_t type,
                   uint8_t syndrome, uint32_t psn)
{
    struct sim_frame frame;

    frame_back(&frame, request, type);
    frame.syndrome = syndrome;
    frame.psn = psn & 0xffffff;
    sim_conn_send(conn, &frame, NULL);
}

/* Packets of a frame, or of the answer to a read. */
static uint32_t packets_of(const struct sim_frame *frame)
{
    uint32_t bytes = SIM_READ == frame->type ? frame->msg_length : frame->length;

    return 0 == bytes ? 1 : (bytes + SIM_MTU - 1) / SIM_MTU;
}

/* Packets that are known to be repeated when they come again. */
#define EXECUTED_MAX 0x7fffffu

static void executed(struct sim_qp *qp, const struct sim_frame *frame)
{
    uint32_t packets = packets_of(frame);

    qp->expected_psn = (frame->psn + packets) & 0xffffff;
    qp->executed = qp->executed + packets < EXECUTED_MAX ? qp->executed + packets : EXECUTED_MAX;
}

/* It was done before, and the answer was lost with its connection. */
static bool came_again(const struct sim_qp *qp, const struct sim_frame *frame)
{
    uint32_t behind = (qp->expected_psn - frame->psn) & 0xffffff;

    return 0 < behind && behind <= qp->executed;
}

/* The request cannot be performed: notify the peer, and enter the error state. */
static void refuse(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame,
                   uint8_t syndrome, const char *why)
{
    struct read_job *job;

    sim_log(1, "QP 0x%x: a request of QP 0x%x is refused: %s", qp->qpn, frame->src_qpn, why);
    answer(conn, frame, SIM_NAK, syndrome, frame->psn);
    for (job = jobs; NULL != job; job = job->next) {
        if (job->request.dst_qpn == qp->qpn) {
            job->before_error = true;
        }
    }
    if (MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR == syndrome) {
        sim_event_send(qp->super.ctx, IBV_EVENT_QP_ACCESS_ERR, qp->user_handle, &qp->events);
    }
    sim_qp_error(qp);
}

/* A planned fault: a present receive is not found, so many times. */
static bool overlooked(void)
{
    const struct fault *fault;

    if (sim.rnr_over) {
        sim.rnr_over = false;
        return false;
    }
    if (0 == sim.rnr_left) {
        fault = sim_fault(FAULT_rnr);
        if (NULL == fault) {
            return false;
        }
        sim.rnr_left = 0 == fault->how ? 1 : fault->how;
    }
    sim.rnr_over = 0 == --sim.rnr_left;
    return true;
}

/* A planned fault: a write fails when half of its first frame is written. */
static bool wrote_half(const struct sim_access *access, const struct sim_frame *frame,
                       const void *payload)
{
    if (2 > frame->length || 0 == (frame->flags & SIM_FIRST) || NULL == sim_fault(FAULT_part)) {
        return false;
    }
    sim_pieces_start(&scratch, 0);
    if (NULL == sim_key_pieces(access, frame->rkey, frame->raddr, frame->length / 2, &scratch)) {
        (void) sim_gpu_write(&scratch, payload);
    }
    return true;
}

static void do_write(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame,
                     const void *payload)
{
    struct sim_access access = {qp->pd, 0, IBV_ACCESS_REMOTE_WRITE};
    const char *why = NULL;
    bool notify = (SIM_LAST | SIM_IMM) == (frame->flags & (SIM_LAST | SIM_IMM));

    if (0 == (qp->access & IBV_ACCESS_REMOTE_WRITE)) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
               "the queue pair allows no remote writes");
        return;
    }
    sim_pieces_start(&scratch, 0);
    if (0 < frame->msg_length && 0 != (frame->flags & SIM_FIRST)) {
        /* All of the message must be allowed before its first byte lands. */
        why = sim_key_pieces(&access, frame->rkey, frame->raddr, frame->msg_length, &scratch);
    }
    sim_pieces_start(&scratch, frame->offset);
    if (NULL == why && 0 < frame->length) {
        why = sim_key_pieces(&access, frame->rkey, frame->raddr + frame->offset, frame->length,
                             &scratch);
    }
    if (NULL == why && wrote_half(&access, frame, payload)) {
        why = "made to fail";
    }
    if (NULL != why) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, why);
        return;
    }
    if (notify && (!sim_receive_there(qp) || overlooked())) {
        answer(conn, frame, SIM_RNR, qp->min_rnr_timer, frame->psn);
        return;
    }
    if (0 != sim_gpu_write(&scratch, payload)) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
               "the memory behind the key is gone");
        return;
    }
    sim_pieces_count(&scratch);
    executed(qp, frame);
    if (0 == (frame->flags & SIM_LAST)) {
        return;
    }
    /* Before the completion: the process may exit as soon as it sees it. */
    answer(conn, frame, SIM_ACK, 0, qp->expected_psn - 1);
    if (notify && !sim_receive_take(qp)) {
        sim_qp_fatal(qp);
    } else if (notify) {
        struct sim_cqe cqe = {0};

        cqe.opcode = MLX5_CQE_RESP_WR_IMM;
        cqe.bytes = frame->msg_length;
        cqe.imm = frame->imm;
        cqe.solicited = 0 != (frame->flags & SIM_SOLICITED);
        sim_receive_complete(qp, &cqe);
        if (NULL != sim_fault(FAULT_deaf)) {
            sim_qp_fatal(qp);
        }
    }
}

static void do_send(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame,
                    const void *payload)
{
    struct sim_cqe cqe = {0};
    uint8_t syndrome;

    if (!sim_receive_there(qp) || (0 != (frame->flags & SIM_FIRST) && overlooked())) {
        answer(conn, frame, SIM_RNR, qp->min_rnr_timer, frame->psn);
        return;
    }
    if (!sim_receive_take(qp)) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_OP_ERR, "the shared receives are broken");
        return;
    }
    syndrome = sim_receive_scatter(qp, frame->offset, frame->length, payload);
    if (0 != syndrome) {
        sim_receive_fail(qp, syndrome);
        refuse(conn, qp, frame,
               MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR == syndrome
                   ? MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
                   : MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
               "the receive does not fit the send");
        return;
    }
    if ((SIM_LAST | SIM_INVALIDATE) == (frame->flags & (SIM_LAST | SIM_INVALIDATE))) {
        struct sim_access access = {qp->pd, 0, 0};
        const char *why = sim_key_invalidate(&access, be32toh(frame->imm));

        if (NULL != why) {
            sim_receive_fail(qp, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
            refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, why);
            return;
        }
    }
    executed(qp, frame);
    if (0 == (frame->flags & SIM_LAST)) {
        return;
    }
    answer(conn, frame, SIM_ACK, 0, qp->expected_psn - 1);
    cqe.opcode = 0 != (frame->flags & SIM_IMM)          ? MLX5_CQE_RESP_SEND_IMM
                 : 0 != (frame->flags & SIM_INVALIDATE) ? MLX5_CQE_RESP_SEND_INV
                                                        : MLX5_CQE_RESP_SEND;
    cqe.bytes = frame->msg_length;
    cqe.imm = frame->imm;
    cqe.solicited = 0 != (frame->flags & SIM_SOLICITED);
    sim_receive_complete(qp, &cqe);
}

/* Reads of a queue pair that are being answered on a connection. */
static unsigned reads_in_flight(const struct sim_conn *conn, const struct sim_qp *qp)
{
    const struct read_job *job;
    unsigned count = 0;

    for (job = jobs; NULL != job; job = job->next) {
        count += conn == job->conn && qp->qpn == job->request.dst_qpn ? 1 : 0;
    }
    return count;
}

static void do_read(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame,
                    bool again)
{
    struct sim_access access = {qp->pd, 0, IBV_ACCESS_REMOTE_READ};
    struct read_job *job;
    const char *why = NULL;

    if (0 == (qp->access & IBV_ACCESS_REMOTE_READ)) {
        why = "the queue pair allows no remote reads";
    } else if (0 < frame->msg_length) {
        sim_pieces_start(&scratch, 0);
        why = sim_key_pieces(&access, frame->rkey, frame->raddr, frame->msg_length, &scratch);
    }
    if (NULL != why) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, why);
        return;
    }
    if (!again && reads_in_flight(conn, qp) >= qp->max_dest_rd_atomic) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
               "more reads at once than max_dest_rd_atomic");
        return;
    }
    job = sim_alloc(sizeof(*job));
    if (NULL == job) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_OP_ERR, "out of memory");
        return;
    }
    job->conn = conn;
    job->request = *frame;
    *jobs_end = job;
    jobs_end = &job->next;
    if (!again) {
        executed(qp, frame);
    }
}

/* The answer to an atomic: the previous value. */
static void answer_atomic(struct sim_conn *conn, const struct sim_qp *qp,
                          const struct sim_frame *request, uint64_t before)
{
    struct sim_frame frame;

    frame_back(&frame, request, SIM_DATA);
    frame.flags = SIM_LAST;
    frame.psn = request->psn;
    frame.length = sizeof(before);
    sim_conn_send(conn, &frame, &before);
    sim.count.packets += sim_qp_packets(qp, sizeof(before));
}

/* The memory of an atomic, in one piece in scratch. @return 0 or a syndrome, and why */
static uint8_t find_atomic(const struct sim_qp *qp, const struct sim_frame *frame, const char **why)
{
    struct sim_access access = {qp->pd, 0, IBV_ACCESS_REMOTE_ATOMIC};

    if (0 == (qp->access & IBV_ACCESS_REMOTE_ATOMIC)) {
        *why = "the queue pair allows no remote atomics";
        return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    }
    if (0 != frame->raddr % SIM_ATOMIC_BYTES) {
        *why = "an atomic that is not aligned";
        return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
    }
    sim_pieces_start(&scratch, 0);
    *why = sim_key_pieces(&access, frame->rkey, frame->raddr, SIM_ATOMIC_BYTES, &scratch);
    if (NULL == *why && 1 != scratch.count) {
        *why = "an atomic on memory that an mkey has in pieces";
    }
    return NULL == *why ? 0 : MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
}

static void do_atomic(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame,
                      const void *payload)
{
    uint64_t operands[SIM_OPERANDS];
    uint64_t before = 0;
    uint64_t after;
    const char *why = NULL;
    uint8_t syndrome;

    if (sizeof(operands) != frame->length) {
        return;
    }
    syndrome = find_atomic(qp, frame, &why);
    if (0 != syndrome) {
        refuse(conn, qp, frame, syndrome, why);
        return;
    }
    /* All that reaches this memory through this HCA waits for the same lock. */
    memcpy(operands, payload, sizeof(operands));
    if (0 != sim_gpu_gather(&before, &scratch)) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
               "the memory behind the key is gone");
        return;
    }
    after = before;
    if (SIM_ADD == frame->type) {
        after += operands[0];
    } else if (before == operands[1]) {
        after = operands[0];
    }
    if (0 != sim_gpu_scatter(&scratch, &after)) {
        refuse(conn, qp, frame, MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
               "the memory behind the key is gone");
        return;
    }
    sim_pieces_count(&scratch);
    qp->atomics[qp->atomics_at] = (struct sim_atomic){true, frame->psn, before};
    qp->atomics_at = (qp->atomics_at + 1) % SIM_ATOMICS;
    executed(qp, frame);
    answer_atomic(conn, qp, frame, before);
}

/* It is answered again, and not done again. */
static void repeat_atomic(struct sim_conn *conn, const struct sim_qp *qp,
                          const struct sim_frame *frame)
{
    unsigned i;

    for (i = 1; i <= SIM_ATOMICS; i++) {
        const struct sim_atomic *done = &qp->atomics[(qp->atomics_at - i) % SIM_ATOMICS];

        if (done->valid && done->psn == frame->psn) {
            answer_atomic(conn, qp, frame, done->before);
            return;
        }
    }
}

/* A request that was done before: writes and sends are only answered, reads are read again. */
static void repeat(struct sim_conn *conn, struct sim_qp *qp, const struct sim_frame *frame)
{
    sim.count.again++;
    if (SIM_READ == frame->type) {
        do_read(conn, qp, frame, true);
    } else if (SIM_SWAP == frame->type || SIM_ADD == frame->type) {
        repeat_atomic(conn, qp, frame);
    } else if (0 != (frame->flags & SIM_LAST)) {
        answer(conn, frame, SIM_ACK, 0, qp->expected_psn - 1);
    }
}

/* Whether two ports are of one fabric and partition, in which one is a full member. */
static bool connected(uint32_t a, uint32_t b)
{
    return 0 == ((a ^ b) & 0xffff7fff) && 0 != ((a | b) & 0x8000);
}

void sim_qp_respond(struct sim_conn *conn, const struct sim_frame *frame, const void *payload)
{
    struct sim_qp *qp = sim_qp_find(frame->dst_qpn);

    if (NULL == qp || (IBV_QPS_RTR != qp->state && IBV_QPS_RTS != qp->state)
        || frame->src_qpn != qp->dest_qpn || frame->src_port != qp->dest_port
        || frame->dst_port != qp->own_port || !connected(qp->network, frame->network)
        || (frame->psn != qp->expected_psn && !came_again(qp, frame))) {
        sim_log(3, "a request for QP 0x%x is dropped", frame->dst_qpn);
        answer(conn, frame, SIM_DROP, 0, frame->psn);
        return;
    }
    if (frame->psn != qp->expected_psn) {
        repeat(conn, qp, frame);
        return;
    }
    switch (frame->type) {
    case SIM_WRITE:
        do_write(conn, qp, frame, payload);
        break;
    case SIM_SEND:
        do_send(conn, qp, frame, payload);
        break;
    case SIM_SWAP:
    case SIM_ADD:
        do_atomic(conn, qp, frame, payload);
        break;
    default:
        do_read(conn, qp, frame, false);
        break;
    }
}

/* One frame of an answer to a read. @return false if it has to wait */
static bool serve_one(struct read_job *job, bool *finished)
{
    struct sim_qp *qp = sim_qp_find(job->request.dst_qpn);
    struct sim_access access = {NULL, 0, IBV_ACCESS_REMOTE_READ};
    struct sim_frame frame;
    uint32_t left = job->request.msg_length - job->sent;
    const char *why;

    if (NULL == qp
        || (IBV_QPS_RTR != qp->state && IBV_QPS_RTS != qp->state
            && !(IBV_QPS_ERR == qp->state && job->before_error))) {
        answer(job->conn, &job->request, SIM_DROP, 0, job->request.psn);
        *finished = true;
        return true;
    }
    if (!sim_conn_room(job->conn)) {
        return false;
    }
    access.pd = qp->pd;
    frame_back(&frame, &job->request, SIM_DATA);
    frame.psn = job->request.psn;
    frame.offset = job->sent;
    frame.length = left < SIM_CHUNK ? left : SIM_CHUNK;
    frame.flags = left <= SIM_CHUNK ? SIM_LAST : 0;
    sim_pieces_start(&scratch, job->sent);
    why = 0 == frame.length
              ? NULL
              : sim_key_pieces(&access, job->request.rkey, job->request.raddr + job->sent,
                               frame.length, &scratch);
    if (NULL == why && 0 != sim_gpu_gather(chunk, &scratch)) {
        why = "the memory behind the key is gone";
    }
    if (NULL != why) {
        refuse(job->conn, qp, &job->request, MLX5_CQE_SYNDROME_REMOTE_OP_ERR, why);
        *finished = true;
        return true;
    }
    if (SIM_UMR_BROKEN == sim.conf.umr && scratch.by_mkey) {
        chunk[0] ^= 0xff;
    }
    sim_conn_send(job->conn, &frame, chunk);
    sim_pieces_count(&scratch);
    sim.count.packets += sim_qp_packets(qp, frame.length);
    job->sent += frame.length;
    *finished = 0 != (frame.flags & SIM_LAST);
    return true;
}

/* Take a job out of the list and free it. */
static void drop_job(struct read_job **at)
{
    struct read_job *job = *at;

    *at = job->next;
    if (NULL == *at) {
        jobs_end = at;
    }
    sim_free(job);
}

bool sim_qp_serve_reads(void)
{
    struct read_job **at = &jobs;
    bool did = false;

    while (NULL != *at) {
        bool finished = false;

        if (!serve_one(*at, &finished)) {
            at = &(*at)->next;
            continue;
        }
        did = true;
        if (finished) {
            drop_job(at);
        }
    }
    return did;
}

void sim_qp_forget_reads(const struct sim_conn *conn, uint32_t qpn, bool all)
{
    struct read_job **at = &jobs;

    while (NULL != *at) {
        if ((*at)->conn == conn) {
            drop_job(at);
        } else if (0 != qpn && (*at)->request.dst_qpn == qpn && (all || !(*at)->before_error)) {
            answer((*at)->conn, &(*at)->request, SIM_DROP, 0, (*at)->request.psn);
            drop_job(at);
        } else {
            at = &(*at)->next;
        }
    }
}
