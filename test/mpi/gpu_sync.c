/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies and memsets that CUDA calls synchronous, but that the device has not finished at their
 * return: no message may carry the previous bytes, and none of these calls may overwrite received
 * data.
 *
 * The sender fills its buffer by such a call and sends it immediately; or the receiver presets its
 * buffer by one and receives immediately. The row sets late= of the software driver; a real device
 * gets other work first. --mode part,part: some of the parts only. A row selects the memory by
 * UMRDDT_TEST_MEMORY.
 */

#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a real device does before a call: bytes copied, and how often. */
#define WORK_BYTES ((size_t) 64 << 20)
#define WORK_TIMES 20

/* Every second block of so many bytes is in the message. */
#define BLOCK 8

/* The calls. */
typedef enum call_t {
    CALL_FROM_PAGEABLE, /* cuMemcpyHtoD; cuMemcpy where the memory is the CPU's */
    CALL_UNIFIED,       /* cuMemcpy from pageable memory */
    CALL_DEVICE,        /* cuMemcpyDtoD */
    CALL_MEMSET,        /* cuMemsetD8 */
    CALLS
} call_t;
static const char *const call_names[CALLS] = {"cuMemcpyHtoD", "cuMemcpy", "cuMemcpyDtoD",
                                              "cuMemsetD8"};

/* How the message goes. */
typedef enum how_t {
    HOW_SEND,
    HOW_ISEND,
    HOW_PERSISTENT,
    HOW_BCAST,
    HOW_ALLTOALL,
    HOWS
} how_t;
static const char *const how_names[HOWS] = {"Send", "Isend", "Send_init", "Bcast", "Alltoall"};

/* A buffer of either side. */
typedef struct side_t {
    gpu_memory_t *memory;
    gpu_memory_t *source; /* of cuMemcpyDtoD */
    gpu_memory_t *other;  /* the other buffer of MPI_Alltoall */
    unsigned char *image; /* pageable memory: what is to be in the buffer, then what is */
} side_t;

/* A message. */
typedef struct case_t {
    gpu_kind_t kind;
    how_t how;
    size_t bytes; /* of the buffer */
    bool contiguous;
    bool late_sender; /* else the receiver */
    MPI_Datatype type;
    MPI_Request request;
} case_t;

static gpu_kind_t kinds[GPU_KINDS];
static int kind_count;
static bool real;
static CUdeviceptr work[2];
static int counters;
static long tries, wrong;

static bool sending(void)
{
    return 0 == mpitest.rank;
}

static void barrier(void)
{
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* What keep_busy() made, before another context is current or the current one is destroyed. */
static void end_work(void)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (0 != work[i]) {
            GPU_OK(gpu.cuMemFree_v2(work[i]));
        }
        work[i] = 0;
    }
}

/* Gives the device work in the default stream of the current context: what follows it is late. */
static void keep_busy(void)
{
    int i;

    if (!real) {
        return;
    }
    if (0 == work[0]) {
        GPU_OK(gpu.cuMemAlloc_v2(&work[0], WORK_BYTES));
        GPU_OK(gpu.cuMemAlloc_v2(&work[1], WORK_BYTES));
    }
    for (i = 0; i < WORK_TIMES; ++i) {
        GPU_OK(gpu.cuMemcpyDtoDAsync_v2(work[0], work[1], WORK_BYTES, NULL));
    }
}

static void side_open(side_t *side, const case_t *c)
{
    CUcontext was;

    side->memory = gpu_memory(c->kind, c->bytes);
    side->source = gpu_memory(GPU_DEVICE, c->bytes);
    side->other = gpu_memory(GPU_DEVICE, c->bytes);
    side->image = malloc(c->bytes);
    CHECK(NULL != side->image);
    /* Some memory is cleared when it is made: in its own context, which need not be the current. */
    GPU_OK(gpu.cuCtxPushCurrent_v2(gpu_context(gpu_device())));
    GPU_OK(gpu.cuCtxSynchronize());
    GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
}

static void side_close(side_t *side)
{
    GPU_OK(gpu.cuCtxSynchronize());
    gpu_memory_free(side->memory);
    gpu_memory_free(side->source);
    gpu_memory_free(side->other);
    free(side->image);
}

/* Byte @p i of what is written for @p key; of a memset all are the same. */
static unsigned char byte_of(call_t call, unsigned key, size_t i)
{
    return (unsigned char) (CALL_MEMSET == call ? key : key + 7 * (i / 64) + i);
}

/* Write it by a call that is named synchronous. */
static void write_by(call_t call, side_t *side, unsigned key, size_t bytes)
{
    CUdeviceptr to = (uintptr_t) side->memory->addr;
    bool cpus = gpu_kind_is_cpus(side->memory->kind);
    size_t i;

    for (i = 0; i < bytes; ++i) {
        side->image[i] = byte_of(call, key, i);
    }
    if (CALL_DEVICE == call) {
        gpu_write(side->source, 0, side->image, bytes);
    }
    keep_busy();
    switch (call) {
    case CALL_DEVICE:
        GPU_OK(cpus ? gpu.cuMemcpy(to, (uintptr_t) side->source->addr, bytes)
                    : gpu.cuMemcpyDtoD_v2(to, (uintptr_t) side->source->addr, bytes));
        break;
    case CALL_MEMSET:
        GPU_OK(gpu.cuMemsetD8_v2(to, (unsigned char) key, bytes));
        break;
    case CALL_FROM_PAGEABLE:
        if (!cpus) {
            GPU_OK(gpu.cuMemcpyHtoD_v2(to, side->image, bytes));
            break;
        }
        /* fall through */
    default:
        GPU_OK(gpu.cuMemcpy(to, (uintptr_t) side->image, bytes));
        break;
    }
    /* Which is allowed as soon as the call is back. */
    memset(side->image, 0x55, bytes);
}

/* The same, and it is done. */
static void write_done(call_t call, side_t *side, unsigned key, size_t bytes)
{
    write_by(call, side, key, bytes);
    GPU_OK(gpu.cuCtxSynchronize());
}

/* Both begin it with their buffers as they are. */
static void message(case_t *c, side_t *side)
{
    void *at = side->memory->addr;
    MPI_Request request;

    switch (c->how) {
    case HOW_SEND:
        if (sending()) {
            MPI_OK(MPI_Send(at, 1, c->type, 1, 5, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Recv(at, 1, c->type, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        break;
    case HOW_ISEND:
        if (sending()) {
            MPI_OK(MPI_Isend(at, 1, c->type, 1, 5, MPI_COMM_WORLD, &request));
        } else {
            MPI_OK(MPI_Irecv(at, 1, c->type, 0, 5, MPI_COMM_WORLD, &request));
        }
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case HOW_PERSISTENT:
        MPI_OK(MPI_Start(&c->request));
        MPI_OK(MPI_Wait(&c->request, MPI_STATUS_IGNORE));
        break;
    case HOW_BCAST:
        MPI_OK(MPI_Bcast(at, 1, c->type, 0, MPI_COMM_WORLD));
        break;
    default:
        /* The second half goes to the other rank, which has it in its first. */
        MPI_OK(MPI_Alltoall(sending() ? at : (void *) side->other->addr, 1, c->type,
                            sending() ? (void *) side->other->addr : at, 1, c->type,
                            MPI_COMM_WORLD));
        break;
    }
}

/* Whether a byte of the receiver's buffer is the sender's. */
static bool is_sent(const case_t *c, size_t i)
{
    return c->contiguous || 0 == i / BLOCK % 2;
}

/* The receiver's buffer must have the sender's bytes, and the preset between them. */
static void check_result(const case_t *c, call_t call, side_t *side, unsigned sent, unsigned preset)
{
    const size_t end = HOW_ALLTOALL == c->how ? c->bytes / 2 : c->bytes;
    size_t i, old = 0, first = 0;

    GPU_OK(gpu.cuCtxSynchronize());
    gpu_read(side->memory, 0, side->image, c->bytes);
    for (i = 0; i < end; ++i) {
        if (side->image[i] != byte_of(call, is_sent(c, i) ? sent : preset, i)) {
            first = 0 == old++ ? i : first;
        }
    }
    ++tries;
    if (0 < old) {
        ++wrong;
        printf(
            "%s %s, %zu bytes of %s memory, %s by %s: %zu bytes are wrong, the first at %zu: 0x%x\n",
            how_names[c->how], c->contiguous ? "contiguous" : "in blocks", c->bytes,
            gpu_kind_name(c->kind), c->late_sender ? "filled" : "preset", call_names[call], old,
            first, side->image[first]);
        fflush(stdout);
    }
}

/* One message, @p call late on one side. */
static void one(case_t *c, call_t call, side_t *side)
{
    static unsigned turn;
    unsigned sent = ++turn * 11, preset = sent + 128;
    bool late = c->late_sender == sending();

    if (!late) {
        write_done(call, side, sending() ? sent : preset, c->bytes);
    }
    barrier();
    if (late) {
        write_by(call, side, sending() ? sent : preset, c->bytes);
    }
    message(c, side);
    if (!sending()) {
        check_result(c, call, side, sent, preset);
    }
    barrier();
}

static void open_type(case_t *c)
{
    size_t bytes = HOW_ALLTOALL == c->how ? c->bytes / 2 : c->bytes;

    if (c->contiguous) {
        MPI_OK(MPI_Type_contiguous((int) bytes, MPI_BYTE, &c->type));
    } else {
        MPI_Datatype vector;

        MPI_OK(MPI_Type_vector((int) (bytes / (2 * BLOCK)), BLOCK, 2 * BLOCK, MPI_BYTE, &vector));
        MPI_OK(MPI_Type_create_resized(vector, 0, (MPI_Aint) bytes, &c->type));
        MPI_OK(MPI_Type_free(&vector));
    }
    MPI_OK(MPI_Type_commit(&c->type));
}

static void open_request(case_t *c, side_t *side)
{
    c->request = MPI_REQUEST_NULL;
    if (HOW_PERSISTENT != c->how) {
        return;
    }
    if (sending()) {
        MPI_OK(MPI_Send_init(side->memory->addr, 1, c->type, 1, 5, MPI_COMM_WORLD, &c->request));
    } else {
        MPI_OK(MPI_Recv_init(side->memory->addr, 1, c->type, 0, 5, MPI_COMM_WORLD, &c->request));
    }
}

/*
 * Messages with new buffers, which are likely to be where the last ones were: the first of each
 * buffer, and the next ones.
 */
static void series(case_t *c, call_t call, int buffers, int each)
{
    side_t side;
    int i, n;

    open_type(c);
    for (i = 0; i < buffers; ++i) {
        side_open(&side, c);
        open_request(c, &side);
        for (n = 0; n < each; ++n) {
            one(c, call, &side);
        }
        if (MPI_REQUEST_NULL != c->request) {
            MPI_OK(MPI_Request_free(&c->request));
        }
        side_close(&side);
    }
    MPI_OK(MPI_Type_free(&c->type));
    mpitest_alive();
}

/* All kinds of memory, calls and sizes. */
static void calls(uint64_t *state)
{
    static const struct {
        size_t bytes;
        bool contiguous;
    } shapes[] = {{(size_t) 256 << 10, false}, {2048, false}, {(size_t) 64 << 10, true}};
    size_t s;
    int k, call, who;

    (void) state;
    for (k = 0; k < kind_count; ++k) {
        for (call = 0; call < CALLS; ++call) {
            for (s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
                for (who = 0; who < 2; ++who) {
                    case_t c = {.kind = kinds[k],
                                .how = HOW_SEND,
                                .bytes = shapes[s].bytes,
                                .contiguous = shapes[s].contiguous,
                                .late_sender = 0 == who};

                    series(&c, (call_t) call, 2, 2);
                }
            }
        }
    }
}

/* All send calls. */
static void ways(uint64_t *state)
{
    int k, how, who;

    (void) state;
    for (k = 0; k < kind_count; ++k) {
        for (how = HOW_ISEND; how < HOWS; ++how) {
            for (who = 0; who < 2; ++who) {
                case_t c = {.kind = kinds[k],
                            .how = (how_t) how,
                            .bytes = (size_t) 128 << 10,
                            .late_sender = 0 == who};

                series(&c, CALL_DEVICE, 1, 2);
                series(&c, CALL_FROM_PAGEABLE, 1, 2);
            }
        }
    }
}

/* Copies in another context than the memory's, which is current when MPI is called. */
static void contexts(uint64_t *state)
{
    CUdevice device;
    CUcontext own, was;
    int k, who;

    (void) state;
    end_work();
    GPU_OK(gpu.cuDeviceGet(&device, gpu_device()));
    GPU_OK(gpu.cuCtxCreate_v2(&own, 0, device));
    for (k = 0; k < kind_count; ++k) {
        for (who = 0; who < 2; ++who) {
            case_t c = {.kind = kinds[k],
                        .how = HOW_SEND,
                        .bytes = (size_t) 128 << 10,
                        .late_sender = 0 == who};

            /* (GPU_INNER is cleared by a call in the other context when it is made.) */
            if (!gpu_kind_is_cpus(c.kind) && GPU_INNER != c.kind) {
                series(&c, CALL_FROM_PAGEABLE, 1, 2);
            }
        }
    }
    end_work();
    GPU_OK(gpu.cuCtxPopCurrent_v2(&was));
    GPU_OK(gpu.cuCtxDestroy_v2(own));
}

/* What a repeated message costs: nothing; memory that cannot have SYNC_MEMOPS one wait a side. */
static void steady(uint64_t *state)
{
    const uint64_t messages = 10 * (uint64_t) mpitest.ops;
    pvars_t before, now, mine, all;
    uint64_t n;
    int k;

    (void) state;
    for (k = 0; k < kind_count; ++k) {
        bool waits = GPU_POOL == kinds[k] || GPU_VMM == kinds[k];
        case_t c = {.kind = kinds[k], .how = HOW_SEND, .bytes = (size_t) 64 << 10};
        side_t side;

        open_type(&c);
        side_open(&side, &c);
        write_done(CALL_FROM_PAGEABLE, &side, 1, c.bytes);
        message(&c, &side);
        pvars_read(&before);
        for (n = 0; n < messages; ++n) {
            message(&c, &side);
        }
        pvars_read(&now);
        pvars_subtract(&now, &before, &mine);
        pvars_sum(&mine, &all);
        if (PVARS_MAX == counters) {
            CHECK_INT(all.value[PVARS_GPU_SYNC_SET], 0);
            CHECK_INT(all.value[PVARS_GPU_SYNC_WAITS], waits ? 2 * messages : 0);
        }
        side_close(&side);
        MPI_OK(MPI_Type_free(&c.type));
    }
}

/* A capture in the strictest mode stays valid where MPI meets new memory meanwhile. */
static void captured(uint64_t *state)
{
    CUstreamCaptureStatus status;
    CUgraph graph = NULL;
    CUstream stream;
    int k, n;

    (void) state;
    GPU_OK(gpu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (k = 0; k < kind_count; ++k) {
        case_t c = {.kind = kinds[k], .how = HOW_SEND, .bytes = (size_t) 64 << 10};
        side_t side[3];

        open_type(&c);
        for (n = 0; n < 3; ++n) {
            side_open(&side[n], &c);
            write_done(CALL_FROM_PAGEABLE, &side[n], (unsigned) (sending() ? 100 + n : 7), c.bytes);
        }
        /* What is made once for the process is there after the first. */
        message(&c, &side[0]);
        GPU_OK(gpu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        for (n = 1; n < 3; ++n) {
            message(&c, &side[n]);
        }
        GPU_OK(gpu.cuStreamIsCapturing(stream, &status));
        CHECK_INT(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        GPU_OK(gpu.cuStreamEndCapture(stream, &graph));
        GPU_OK(gpu.cuGraphDestroy(graph));
        for (n = 0; n < 3; ++n) {
            if (!sending()) {
                check_result(&c, CALL_FROM_PAGEABLE, &side[n], (unsigned) (100 + n), 7);
            }
            side_close(&side[n]);
        }
        MPI_OK(MPI_Type_free(&c.type));
        barrier();
    }
    GPU_OK(gpu.cuStreamDestroy_v2(stream));
}

static const mpitest_part_t parts[] = {{"calls", calls},       {"ways", ways},
                                       {"contexts", contexts}, {"steady", steady},
                                       {"captured", captured}, {NULL, NULL}};

int main(int argc, char **argv)
{
    const char *list = getenv("UMRDDT_TEST_MEMORY"), *wish = getenv("UMRDDT_TEST_GPU");
    long all[2], mine[2];

    mpitest_init(&argc, &argv, "gpu_sync", 1, MPI_THREAD_SINGLE);
    gpu_begin_all();
    real = NULL != wish && 0 == strcmp("real", wish);
    kind_count =
        gpu_kinds_of(NULL == list || '\0' == list[0] ? "gpu,pinned,registered" : list, kinds);
    CHECK(0 < kind_count);
    counters = pvars_open();
    mpitest_run(parts);
    end_work();
    mine[0] = wrong;
    mine[1] = tries;
    MPI_OK(MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("%ld of %ld messages were wrong\n", all[0], all[1]);
    }
    CHECK_INT(all[0], 0);
    pvars_close();
    return mpitest_finish();
}
