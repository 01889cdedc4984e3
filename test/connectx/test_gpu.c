/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Memory of the software GPUs behind keys: by dma-buf and by address, written late unless flushed.
 * Run by test_gpu.sh, below umrddt_sim --gpus 1.
 */

#include "verbs_pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "umrddt_cuda.h"

#define BYTES 20000u
#define OK(call)                       \
    do {                               \
        CHECK(CUDA_SUCCESS == (call)); \
    } while (0)

/* The driver, as components load it. */
static struct {
#define SLOT(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS(SLOT)
} cuda;

static struct pair p;
static uint8_t host[BYTES];

static void find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    memcpy(slot, &function, sizeof(function));
}

static void cuda_begin(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUcontext ctx;

    CHECK(NULL != library);
#define FIND(name, base, version, arguments) find(library, #name, &cuda.name);
    UMRDDT_CUDA_FUNCTIONS(FIND)
    OK(cuda.cuInit(0));
    OK(cuda.cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuda.cuCtxSetCurrent(ctx));
}

static CUdeviceptr device_alloc(size_t bytes)
{
    CUdeviceptr ptr;

    OK(cuda.cuMemAlloc_v2(&ptr, bytes));
    OK(cuda.cuMemsetD8_v2(ptr, 0xa5, bytes));
    OK(cuda.cuCtxSynchronize());
    return ptr;
}

static struct ibv_mr *try_dmabuf(CUdeviceptr ptr, size_t bytes)
{
    uint64_t first = ptr & ~4095ull;
    size_t pages = (ptr + bytes - first + 4095) & ~4095ull;
    struct ibv_mr *mr;
    int fd = -1;

    OK(cuda.cuMemGetHandleForAddressRange(&fd, first, pages, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                          0));
    mr = ibv_reg_dmabuf_mr(p.b.pd, ptr - first, bytes, ptr, fd, PAIR_ALL);
    close(fd);
    return mr;
}

static struct ibv_mr *try_address(CUdeviceptr ptr, size_t bytes)
{
    return ibv_reg_mr(p.b.pd, (void *) (uintptr_t) ptr, bytes, PAIR_ALL);
}

/* The bytes that a GPU sees without a flush. */
static uint8_t seen(CUdeviceptr ptr, size_t at)
{
    OK(cuda.cuMemcpyDtoH_v2(host, ptr, BYTES));
    return host[at];
}

static void write_page(struct ibv_mr *mr, uint64_t to)
{
    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, PAIR_PAGE, mr->rkey, to, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
}

static void read_there(struct ibv_mr *mr, uint64_t from)
{
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 2;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, mr->rkey, from);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, 8);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
}

/* Bytes arrive at their place, for memory that begins in any page; and nowhere else. */
static void bytes_of(struct ibv_mr *(*reg)(CUdeviceptr, size_t))
{
    static const size_t sizes[] = {BYTES, 3000, 700};

    for (int i = 0; i < 12; i++) {
        size_t bytes = sizes[i % 3];
        CUdeviceptr ptr = device_alloc(bytes);
        struct ibv_mr *mr = reg(ptr, bytes);

        CHECK(NULL != mr);
        end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 500, mr->rkey, ptr + 100, 0);
        end_expect(&p.a, 1, IBV_WC_SUCCESS);
        OK(cuda.cuFlushGPUDirectRDMAWrites(0, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
        OK(cuda.cuMemcpyDtoH_v2(host, ptr, bytes));
        for (size_t k = 0; k < bytes; k++) {
            CHECK(host[k] == (100 <= k && 600 > k ? 0x5a : 0xa5));
        }
        CHECK(0 == ibv_dereg_mr(mr));
        if (0 == i % 2) {
            OK(cuda.cuMemFree_v2(ptr));
        }
    }
}

static void dmabuf(void)
{
    bytes_of(try_dmabuf);
}

static void address(void)
{
    bytes_of(try_address);
}

/* And from there: a send gathers from a GPU; a read brings. */
static void from(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);
    struct ibv_mr *mr = try_dmabuf(ptr, BYTES);

    CHECK(NULL != mr);
    OK(cuda.cuMemsetD8_v2(ptr + 300, 7, 8));
    OK(cuda.cuCtxSynchronize());
    end_write(&p.b, 3, mr->lkey, ptr + 300, 8, p.src->rkey, (uintptr_t) pair_src + 64, 0);
    end_expect(&p.b, 3, IBV_WC_SUCCESS);
    CHECK(7 == pair_src[64] && 7 == pair_src[71] && 0x5a == pair_src[72]);
    read_there(mr, ptr + 304);
    CHECK(7 == pair_src[0] && 7 == pair_src[3] && 0xa5 == pair_src[4]);
    CHECK(0 == ibv_dereg_mr(mr));
}

/* Pieces of one length, as far apart; then one that is not: gathered from a GPU, scattered to one.
 */
static void strided(void)
{
    enum {
        LENGTH = 24,
        STRIDE = 1000,
        PIECES = 4
    };
    CUdeviceptr ptr = device_alloc(BYTES);
    struct ibv_mr *mr = try_address(ptr, BYTES);
    struct ibv_sge pieces[PIECES];

    CHECK(NULL != mr);
    for (int odd = 0; odd < 2; odd++) {
        for (int i = 0; i < PIECES; i++) {
            pieces[i] = (struct ibv_sge){ptr + (uint64_t) (i * STRIDE), LENGTH, mr->lkey};
            OK(cuda.cuMemsetD8_v2(pieces[i].addr, (unsigned char) (i + 1), LENGTH));
        }
        pieces[PIECES - 1].addr += odd ? 5 : 0;
        pieces[PIECES - 1].length -= odd ? 5 : 0;
        OK(cuda.cuCtxSynchronize());
        memset(pair_src, 0x5a, PAIR_PAGE);
        ibv_wr_start(p.b.qpx);
        p.b.qpx->wr_id = 6;
        p.b.qpx->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(p.b.qpx, p.src->rkey, (uintptr_t) pair_src);
        ibv_wr_set_sge_list(p.b.qpx, PIECES, pieces);
        CHECK(0 == ibv_wr_complete(p.b.qpx));
        end_expect(&p.b, 6, IBV_WC_SUCCESS);
        for (int k = 0; k < PIECES * LENGTH; k++) {
            CHECK(pair_src[k] == (odd && PIECES * LENGTH - 5 <= k ? 0x5a : 1 + k / LENGTH));
        }
        memset(pair_src, 0x77, PAIR_PAGE);
        ibv_wr_start(p.b.qpx);
        p.b.qpx->wr_id = 7;
        ibv_wr_rdma_read(p.b.qpx, p.src->rkey, (uintptr_t) pair_src);
        ibv_wr_set_sge_list(p.b.qpx, PIECES, pieces);
        CHECK(0 == ibv_wr_complete(p.b.qpx));
        end_expect(&p.b, 7, IBV_WC_SUCCESS);
        OK(cuda.cuMemcpyDtoH_v2(host, ptr, BYTES));
        for (int k = 0; k < PIECES * STRIDE; k++) {
            bool in = LENGTH > k % STRIDE;
            bool left_out = odd && (PIECES - 1) * STRIDE <= k && (PIECES - 1) * STRIDE + 5 > k;

            CHECK(host[k] == (!in ? 0xa5 : left_out ? PIECES : 0x77));
        }
    }
    CHECK(0 == ibv_dereg_mr(mr));
}

/* (gpu_late=2000) */
static void late(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);
    struct ibv_mr *mr = try_dmabuf(ptr, BYTES);

    CHECK(NULL != mr);
    write_page(mr, ptr);
    CHECK(0xa5 == seen(ptr, 0));
    OK(cuda.cuFlushGPUDirectRDMAWrites(0, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    CHECK(0x5a == seen(ptr, 0));
    /* A read by the HCA. */
    write_page(mr, ptr + 5000);
    CHECK(0xa5 == seen(ptr, 5000));
    read_there(mr, ptr + 5000);
    CHECK(0x5a == seen(ptr, 5000));
    /* Time. */
    write_page(mr, ptr + 10000);
    CHECK(0xa5 == seen(ptr, 10000));
    sleep(4);
    CHECK(0x5a == seen(ptr, 10000));
    CHECK(0 == ibv_dereg_mr(mr));
}

/* (ordering=owner or flush=0) */
static void ordered(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);
    struct ibv_mr *mr = try_dmabuf(ptr, BYTES);

    CHECK(NULL != mr);
    write_page(mr, ptr);
    CHECK(0x5a == seen(ptr, 0));
    CHECK(0 == ibv_dereg_mr(mr));
}

static void no_flush(void)
{
    CHECK(CUDA_ERROR_NOT_SUPPORTED
          == cuda.cuFlushGPUDirectRDMAWrites(0, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

/* A registration by address ends with the memory; one by dma-buf holds the memory, but never sees
 * what comes after it. */
static void freed(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);
    CUdeviceptr again;
    struct ibv_mr *mr = try_dmabuf(ptr, BYTES);
    struct ibv_mr *by_address = try_address(ptr, BYTES);

    CHECK(NULL != mr && NULL != by_address);
    OK(cuda.cuMemFree_v2(ptr));
    again = device_alloc(BYTES);
    CHECK(again == ptr);
    write_page(mr, ptr);
    OK(cuda.cuFlushGPUDirectRDMAWrites(0, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    CHECK(0xa5 == seen(again, 0));
    end_write(&p.a, 4, p.src->lkey, (uintptr_t) pair_src, 8, by_address->rkey, ptr, 0);
    end_expect(&p.a, 4, IBV_WC_REM_ACCESS_ERR);
    CHECK(0xa5 == seen(again, 0));
    CHECK(0 == ibv_dereg_mr(by_address));
    CHECK(0 == ibv_dereg_mr(mr));
}

/* Memory that cannot be registered, and invalid requests. */
static void refused(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);
    struct ibv_mr *mr;
    int fd = -1;

    CHECK(NULL == ibv_reg_mr(p.b.pd, (void *) (uintptr_t) ptr, 2 * BYTES, PAIR_ALL));
    CHECK(EFAULT == errno);
    OK(cuda.cuMemGetHandleForAddressRange(&fd, ptr, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    CHECK(NULL == ibv_reg_dmabuf_mr(p.b.pd, 100, 100, ptr, fd, PAIR_ALL) && EINVAL == errno);
    CHECK(NULL == ibv_reg_dmabuf_mr(p.b.pd, 0, 100, ptr, 0, PAIR_ALL) && EINVAL == errno);
    close(fd);
    mr = try_dmabuf(ptr, BYTES);
    CHECK(NULL != mr);
    end_write(&p.a, 5, p.src->lkey, (uintptr_t) pair_src, 8, mr->rkey, ptr + BYTES - 4, 0);
    end_expect(&p.a, 5, IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
}

/* (dmabuf=0) */
static void no_dmabuf(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);

    CHECK(NULL == try_dmabuf(ptr, BYTES) && EOPNOTSUPP == errno);
    bytes_of(try_address);
}

/* (UMRDDT_GPU: peermem=0) */
static void no_peermem(void)
{
    CUdeviceptr ptr = device_alloc(BYTES);

    CHECK(NULL == try_address(ptr, BYTES) && EFAULT == errno);
    bytes_of(try_dmabuf);
}

/* (bar_bytes=50000) */
static void bar(void)
{
    CUdeviceptr ptr[3] = {device_alloc(BYTES), device_alloc(BYTES), device_alloc(BYTES)};
    struct ibv_mr *first = try_dmabuf(ptr[0], BYTES);
    struct ibv_mr *second = try_address(ptr[1], BYTES);

    CHECK(NULL != first && NULL != second);
    CHECK(NULL == try_dmabuf(ptr[2], BYTES) && ENOMEM == errno);
    CHECK(NULL == try_address(ptr[2], BYTES) && ENOMEM == errno);
    CHECK(0 == ibv_dereg_mr(first));
    first = try_dmabuf(ptr[2], BYTES);
    CHECK(NULL != first);
    CHECK(0 == ibv_dereg_mr(first) && 0 == ibv_dereg_mr(second));
}

int main(int argc, char **argv)
{
    static const struct pair_case cases[] = {{"dmabuf", dmabuf},
                                             {"address", address},
                                             {"from", from},
                                             {"strided", strided},
                                             {"late", late},
                                             {"ordered", ordered},
                                             {"no_flush", no_flush},
                                             {"freed", freed},
                                             {"refused", refused},
                                             {"no_dmabuf", no_dmabuf},
                                             {"no_peermem", no_peermem},
                                             {"bar", bar}};
    bool any = false;

    alarm(END_HANG_SECONDS);
    pair_src = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    pair_dst = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    CHECK(NULL != pair_src && NULL != pair_dst);
    cuda_begin();
    for (int i = 1; i < argc; i++) {
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            if (0 == strcmp(cases[k].name, argv[i])) {
                end_case = cases[k].name;
                pair_make(&p, NULL);
                cases[k].run();
                pair_unmake(&p);
                printf("ok: %s\n", end_case);
                any = true;
            }
        }
    }
    CHECK(any);
    return 0;
}
