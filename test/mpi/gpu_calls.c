/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_Pack, MPI_Unpack, their external forms, MPI_Sendrecv_replace and MPI_Isendrecv_replace on GPU
 * memory, with libumrddt_mpi preloaded. The expected bytes are those of Open MPI on system memory.
 * Parts:
 *
 * - query: MPIX_Query_cuda_support
 * - layouts: many layouts, all combinations of two kinds of memory, at a position
 * - steady: a repeated call is one launch and creates nothing
 * - plain: Open MPI handles calls on system memory
 * - wrong: wrong arguments are Open MPI's to report; nothing is written
 * - mixed: a type with data in GPU memory and in system memory
 * - fortran: MPI_Pack of Fortran
 * - external: MPI_Pack_external and MPI_Unpack_external
 * - ring: MPI_Sendrecv_replace, also of a process to itself and with MPI_PROC_NULL
 * - started, several: MPI_Isendrecv_replace, the same and several at once, and MPI_Cancel of one
 * - counts: the forms with MPI_Count
 * - asserted: MPI_Sendrecv_replace with an assertion about the memory
 * - truncated, staged: messages that are longer than their receives
 *
 * Not by default:
 *
 * - fail: the GPU fails (fail=)
 * - absent: without the library: only that it is not there
 * - module: the program loads the library into a scope of its own before MPI_Init
 * - unused: with the library, and without umrddt, or without a GPU: Open MPI's own behaviour
 */

#include "gpu_shapes.h"
#include "mpitest.h"
#include "pvars.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT = 13,    /* position of the packed bytes */
    AFTER = 29, /* more bytes behind them */
    FILL = 0xa5,
    TIMES = 8
};

static const gpu_kind_t kinds[] = {GPU_DEVICE, GPU_HOST, GPU_MANAGED, GPU_PINNED, GPU_VMM};
#define KINDS ((int) (sizeof(kinds) / sizeof(kinds[0])))

/* The function of the process, or NULL. */
static void *symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static bool is_preloaded(void)
{
    return NULL != symbol("umrddt_mpi_attach_2");
}

static int query_support(void)
{
    int (*function)(void) = NULL;

    *(void **) &function = symbol("MPIX_Query_cuda_support");
    return NULL == function ? 0 : function();
}

/* What was counted since 'before', which is updated. */
static pvars_t since(pvars_t *before)
{
    pvars_t now, seen;

    pvars_read(&now);
    pvars_subtract(&now, before, &seen);
    *before = now;
    return seen;
}

static void query(uint64_t *state)
{
    (void) state;
    CHECK_INT(query_support(), 1);
}

static void absent(uint64_t *state)
{
    (void) state;
    CHECK(!is_preloaded());
}

/* The library that the program has loaded, or NULL. */
static void *loaded;

static void module(uint64_t *state)
{
    int (*query)(void) = NULL;
    __typeof__(&MPI_Pack) pack = NULL;
    unsigned char bytes[64], seen[64] = {0};
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, sizeof(bytes));
    int position = 0;

    CHECK(!is_preloaded());
    *(void **) &query = dlsym(loaded, "MPIX_Query_cuda_support");
    *(void **) &pack = dlsym(loaded, "MPI_Pack");
    CHECK_INT(query(), 1);
    for (size_t i = 0; i < sizeof(bytes); ++i) {
        bytes[i] = (unsigned char) mpitest_random(state);
    }
    gpu_write(memory, 0, bytes, sizeof(bytes));
    MPI_OK(
        pack(memory->addr, sizeof(bytes), MPI_BYTE, seen, sizeof(seen), &position, MPI_COMM_WORLD));
    CHECK(0 == memcmp(seen, bytes, sizeof(bytes)));
    /* Open MPI's own, which has a scope that the library does not search first */
    position = 0;
    MPI_OK(pack(bytes, sizeof(bytes), MPI_BYTE, seen, sizeof(seen), &position, MPI_COMM_WORLD));
    CHECK_INT(position, (int) sizeof(bytes));
    gpu_memory_free(memory);
}

static void unused(uint64_t *state)
{
    int from = 7, to = 0, position = 0;
    char packed[16];

    (void) state;
    CHECK(is_preloaded());
    CHECK_INT(query_support(), 0);
    MPI_OK(MPI_Pack(&from, 1, MPI_INT, packed, sizeof(packed), &position, MPI_COMM_WORLD));
    CHECK_INT(position, (int) sizeof(int));
    position = 0;
    MPI_OK(MPI_Unpack(packed, sizeof(packed), &position, &to, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK_INT(to, 7);
    to = mpitest.rank;
    MPI_OK(MPI_Sendrecv_replace(&to, 1, MPI_INT, mpitest_right(), 1, mpitest_left(), 1,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_INT(to, mpitest_left());
}

/* ---------------------------------------------------------------------------------------------
 * MPI_Pack and MPI_Unpack
 * ------------------------------------------------------------------------------------------- */

static void fill(gpu_memory_t *memory)
{
    unsigned char *bytes = malloc(memory->bytes);

    memset(bytes, FILL, memory->bytes);
    gpu_write(memory, 0, bytes, memory->bytes);
    free(bytes);
}

/* Compare packed bytes at AT, and what is around them. */
static void check_packed(const gpu_memory_t *memory, const unsigned char *expected, size_t size)
{
    unsigned char *bytes = malloc(memory->bytes);

    gpu_read(memory, 0, bytes, memory->bytes);
    for (size_t i = 0; i < memory->bytes; ++i) {
        const unsigned char wanted = i < AT || i >= AT + size ? FILL : expected[i - AT];

        if (wanted != bytes[i]) {
            mpitest_fail(__FILE__, __LINE__, "packed byte %zu of %zu is %d, expected %d", i, size,
                         bytes[i], wanted);
        }
    }
    ++mpitest.checks;
    free(bytes);
}

/* Pack and unpack one end of a shape between two kinds of memory. */
static void both_ways(const gpu_end_t *end, gpu_kind_t user, gpu_kind_t packed)
{
    const size_t size = (size_t) end->map->size;
    const int room = AT + (int) size + AFTER;
    mpitest_buffer_t *plain = mpitest_buffer_of(end->map, GPU_HOST);
    mpitest_buffer_t *buffer = mpitest_buffer_of(end->map, user);
    gpu_memory_t *memory = gpu_memory(packed, (size_t) room);
    unsigned char *expected = malloc(size + 1);
    const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) ++mpitest.step, 0);
    int position = 0;

    mpitest_fill(plain, key);
    MPI_OK(MPI_Pack(plain->addr, end->count, end->type, expected, (int) size, &position,
                    MPI_COMM_WORLD));
    CHECK_INT(position, (int) size);

    mpitest_fill(buffer, key);
    fill(memory);
    position = AT;
    /* Fortran's calls and tools' arrive as PMPI_Pack */
    MPI_OK((0 == mpitest.step % 2 ? MPI_Pack : PMPI_Pack)(
        buffer->addr, end->count, end->type, memory->addr, room, &position, MPI_COMM_WORLD));
    CHECK_INT(position, AT + (int) size);
    check_packed(memory, expected, size);

    mpitest_clear(buffer);
    position = AT;
    MPI_OK((0 == mpitest.step % 2 ? MPI_Unpack : PMPI_Unpack)(
        memory->addr, room, &position, buffer->addr, end->count, end->type, MPI_COMM_WORLD));
    CHECK_INT(position, AT + (int) size);
    VERIFY(buffer, key, (MPI_Aint) size);
    free(expected);
    gpu_memory_free(memory);
    mpitest_buffer_free(buffer);
    mpitest_buffer_free(plain);
}

static void layouts(uint64_t *state)
{
    const int shapes = gpu_shape_fixed_count();

    for (int i = 0; i < shapes; ++i) {
        gpu_shape_t *shape = gpu_shape_fixed(i);

        for (int pair = 0; pair < KINDS * KINDS; ++pair) {
            const gpu_kind_t user = kinds[pair / KINDS], packed = kinds[pair % KINDS];

            /* all pairs of the first two kinds; the others in turn */
            if ((1 < pair / KINDS || 1 < pair % KINDS) && i % (KINDS * KINDS) != pair) {
                continue;
            }
            if (gpu_kind_available(user) && gpu_kind_available(packed)) {
                both_ways(&shape->send, user, packed);
            }
        }
        gpu_shape_free(shape);
    }
    for (int i = 0; i < 20; ++i) {
        gpu_shape_t *shape = gpu_shape_nested(state);

        if (gpu_kind_available(kinds[i % KINDS])) {
            both_ways(&shape->recv, kinds[i % KINDS], kinds[i / 2 % 2]);
        }
        gpu_shape_free(shape);
    }
}

static void steady(uint64_t *state)
{
    static const mpitest_kind_t of[] = {MPITEST_FINE, MPITEST_IRREGULAR, MPITEST_NEGATIVE,
                                        MPITEST_NESTED};

    (void) state;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); ++i) {
        for (int packed = 0; packed < 2; ++packed) {
            const int bytes = 4096;
            MPI_Datatype type = mpitest_type(of[i], bytes, mpitest.seed);
            mpitest_map_t *map = mpitest_map(type, 1);
            mpitest_buffer_t *buffer = mpitest_buffer_of(map, GPU_DEVICE);
            gpu_memory_t *memory = gpu_memory(0 == packed ? GPU_DEVICE : GPU_PINNED, bytes);
            pvars_t before, seen;

            mpitest_fill(buffer, 1);
            for (int turn = 0; turn < 2 + TIMES; ++turn) {
                int position = 0;

                if (2 == turn) {
                    pvars_read(&before);
                }
                MPI_OK(MPI_Pack(buffer->addr, 1, type, memory->addr, bytes, &position,
                                MPI_COMM_WORLD));
                position = 0;
                MPI_OK(MPI_Unpack(memory->addr, bytes, &position, buffer->addr, 1, type,
                                  MPI_COMM_WORLD));
            }
            seen = since(&before);
            CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], 2 * TIMES);
            CHECK_INT(seen.value[PVARS_GPU_COPIES], 2 * TIMES);
            /* a kernel, or one copy of the driver */
            CHECK_INT(seen.value[PVARS_GPU_LAUNCHES] + seen.value[PVARS_GPU_DRIVER_COPIES],
                      2 * TIMES);
            CHECK_INT(seen.value[PVARS_GPU_QUERIES], 4 * TIMES);
            CHECK_INT(seen.value[PVARS_LAYOUT_MISSES], 0);
            CHECK_INT(seen.value[PVARS_GPU_SHAPES_MADE], 0);
            CHECK_INT(seen.value[PVARS_GPU_LISTS_UPLOADED], 0);
            CHECK_INT(seen.value[PVARS_GPU_PINNED_BUFFERS], 0);
            VERIFY(buffer, 1, bytes);
            gpu_memory_free(memory);
            mpitest_buffer_free(buffer);
            mpitest_map_free(map);
            MPI_OK(MPI_Type_free(&type));
        }
    }
}

static void plain(uint64_t *state)
{
    unsigned char from[64] = {1}, *to = malloc(64);
    pvars_t before, seen;

    (void) state;
    pvars_read(&before);
    for (int i = 0; i < TIMES; ++i) {
        int position = 0;

        MPI_OK(MPI_Pack(from, 64, MPI_BYTE, to, 64, &position, MPI_COMM_WORLD));
        CHECK_INT(position, 64);
        position = 0;
        MPI_OK(MPI_Unpack(to, 64, &position, from, 64, MPI_BYTE, MPI_COMM_WORLD));
    }
    seen = since(&before);
    CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], 0);
    CHECK_INT(seen.value[PVARS_GPU_QUERIES], 0);
    free(to);
}

/* Compare memory that nothing may have written from a byte on. */
static void check_filled(const gpu_memory_t *memory, size_t from)
{
    unsigned char *bytes = malloc(memory->bytes);

    gpu_read(memory, 0, bytes, memory->bytes);
    for (size_t i = from; i < memory->bytes; ++i) {
        if (FILL != bytes[i]) {
            mpitest_fail(__FILE__, __LINE__, "byte %zu is written", i);
        }
    }
    ++mpitest.checks;
    free(bytes);
}

/* The class of the error of a call that must fail. */
#define CLASS_OF(call) mpitest_error_class(call)

static void wrong(uint64_t *state)
{
    gpu_memory_t *from = gpu_memory(GPU_DEVICE, 64), *to = gpu_memory(GPU_DEVICE, 64);
    MPI_Aint where = 0;
    int position = 1;

    (void) state;
    fill(from);
    fill(to);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_INT(CLASS_OF(MPI_Pack(from->addr, 64, MPI_BYTE, to->addr, 64, &position, MPI_COMM_WORLD)),
              MPI_ERR_TRUNCATE);
    CHECK_INT(
        CLASS_OF(MPI_Unpack(from->addr, 64, &position, to->addr, 64, MPI_BYTE, MPI_COMM_WORLD)),
        MPI_ERR_TRUNCATE);
    CHECK_INT(CLASS_OF(MPI_Pack(from->addr, 8, MPI_DATATYPE_NULL, to->addr, 64, &position,
                                MPI_COMM_WORLD)),
              MPI_ERR_TYPE);
    CHECK_INT(CLASS_OF(MPI_Pack(from->addr, -1, MPI_BYTE, to->addr, 64, &position, MPI_COMM_WORLD)),
              MPI_ERR_COUNT);
    CHECK_INT(CLASS_OF(MPI_Sendrecv_replace(from->addr, 8, MPI_BYTE, mpitest.size, 1, 0, 1,
                                            MPI_COMM_WORLD, MPI_STATUS_IGNORE)),
              MPI_ERR_RANK);
    CHECK_INT(CLASS_OF(MPI_Sendrecv_replace(from->addr, 8, MPI_BYTE, 0, -5, 0, 1, MPI_COMM_WORLD,
                                            MPI_STATUS_IGNORE)),
              MPI_ERR_TAG);
#if 5 <= OMPI_MAJOR_VERSION
    CHECK_INT(
        CLASS_OF(MPI_Isendrecv_replace(from->addr, 8, MPI_BYTE, 0, 1, 0, 1, MPI_COMM_WORLD, NULL)),
        MPI_ERR_REQUEST);
#endif
    where = 60;
    CHECK_INT(
        CLASS_OF(MPI_Pack_external("external32", from->addr, 2, MPI_INT, to->addr, 64, &where)),
        MPI_ERR_TRUNCATE);
    CHECK_INT((int) where, 60);
    CHECK_INT(CLASS_OF(MPI_Pack(from->addr, 8, MPI_BYTE, NULL, 64, &position, MPI_COMM_WORLD)),
              MPI_ERR_ARG);
    CHECK_INT(CLASS_OF(MPI_Pack(NULL, 8, MPI_BYTE, to->addr, 64, &position, MPI_COMM_WORLD)),
              MPI_ERR_BUFFER);
    CHECK_INT(CLASS_OF(MPI_Unpack(NULL, 64, &position, to->addr, 8, MPI_BYTE, MPI_COMM_WORLD)),
              MPI_ERR_ARG);
    CHECK_INT(CLASS_OF(MPI_Unpack(from->addr, 64, &position, NULL, 8, MPI_BYTE, MPI_COMM_WORLD)),
              MPI_ERR_BUFFER);
    where = 0;
    CHECK_INT(CLASS_OF(MPI_Pack_external("external32", from->addr, 2, MPI_INT, NULL, 64, &where)),
              MPI_ERR_ARG);
    CHECK_INT(CLASS_OF(MPI_Pack_external("external32", NULL, 2, MPI_INT, to->addr, 64, &where)),
              MPI_ERR_BUFFER);
    CHECK_INT((int) where, 0);
    CHECK_INT(position, 1);
    /* nothing to do, with any address */
    position = 64;
    MPI_OK(MPI_Pack(from->addr, 0, MPI_BYTE, to->addr, 64, &position, MPI_COMM_WORLD));
    CHECK_INT(position, 64);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    check_filled(from, 0);
    check_filled(to, 0);
    gpu_memory_free(from);
    gpu_memory_free(to);
}

/* Compare two halves in GPU memory and in system memory. */
static void check_halves(const gpu_memory_t *device, const unsigned char *host,
                         const unsigned char *expected)
{
    unsigned char *bytes = malloc(device->bytes);

    gpu_read(device, 0, bytes, device->bytes);
    CHECK(0 == memcmp(bytes, expected, device->bytes));
    CHECK(0 == memcmp(host, expected + device->bytes, device->bytes));
    free(bytes);
}

/* Data of a rank. */
static void data_of(unsigned char *data, const unsigned char *common, int rank, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        data[i] = (unsigned char) (common[i] ^ (unsigned char) rank);
    }
}

/* The first half of the data in GPU memory, the second in system memory, at absolute addresses. */
static void mixed(uint64_t *state)
{
    enum {
        BLOCK = 3000
    };
    gpu_memory_t *device = gpu_memory(GPU_DEVICE, BLOCK), *packed[2];
    unsigned char host[BLOCK], common[2 * BLOCK], data[2 * BLOCK], left[2 * BLOCK];
    int lengths[] = {BLOCK, BLOCK};
    MPI_Aint addresses[2], where;
    MPI_Datatype type;

    for (int i = 0; i < 2 * BLOCK; ++i) {
        common[i] = (unsigned char) mpitest_random(state);
    }
    data_of(data, common, mpitest.rank, sizeof(data));
    data_of(left, common, mpitest_left(), sizeof(left));
    MPI_OK(MPI_Get_address(device->addr, &addresses[0]));
    MPI_OK(MPI_Get_address(host, &addresses[1]));
    MPI_OK(MPI_Type_create_hindexed(2, lengths, addresses, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    packed[0] = gpu_memory(GPU_DEVICE, AT + 2 * BLOCK + AFTER);
    packed[1] = gpu_memory(GPU_HOST, AT + 2 * BLOCK + AFTER);
    for (int i = 0; i < 2; ++i) {
        int position = AT;

        gpu_write(device, 0, data, BLOCK);
        memcpy(host, data + BLOCK, BLOCK);
        fill(packed[i]);
        MPI_OK(MPI_Pack(MPI_BOTTOM, 1, type, packed[i]->addr, (int) packed[i]->bytes, &position,
                        MPI_COMM_WORLD));
        CHECK_INT(position, AT + 2 * BLOCK);
        check_packed(packed[i], data, sizeof(data));
        memset(host, 0, BLOCK);
        fill(device);
        position = AT;
        MPI_OK(MPI_Unpack(packed[i]->addr, (int) packed[i]->bytes, &position, MPI_BOTTOM, 1, type,
                          MPI_COMM_WORLD));
        check_halves(device, host, data);

        where = AT;
        fill(packed[i]);
        MPI_OK(MPI_Pack_external("external32", MPI_BOTTOM, 1, type, packed[i]->addr,
                                 (MPI_Aint) packed[i]->bytes, &where));
        CHECK_INT((int) where, AT + 2 * BLOCK);
        check_packed(packed[i], data, sizeof(data));

        /* two halves change places, and back */
        MPI_OK(MPI_Sendrecv_replace(MPI_BOTTOM, 1, type, mpitest_right(), 8, mpitest_left(), 8,
                                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_halves(device, host, left);
        MPI_OK(MPI_Sendrecv_replace(MPI_BOTTOM, 1, type, mpitest_left(), 8, mpitest_right(), 8,
                                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_halves(device, host, data);
        gpu_memory_free(packed[i]);
    }
    MPI_OK(MPI_Type_free(&type));
    gpu_memory_free(device);
}

/* Fortran's MPI_Pack, if this Open MPI has it. */
static void fortran(uint64_t *state)
{
    void *library = dlopen("libmpi_mpifh.so.40", RTLD_LAZY);
    void (*pack)(void *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                 MPI_Fint *) = NULL;
    gpu_memory_t *from = gpu_memory(GPU_DEVICE, 64), *to = gpu_memory(GPU_DEVICE, 64 + AT);
    unsigned char data[64];
    MPI_Fint count = 64, type = MPI_Type_c2f(MPI_BYTE), room = 64 + AT, position = AT, error = -1;
    MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    pvars_t before, seen;

    for (int i = 0; i < 64; ++i) {
        data[i] = (unsigned char) mpitest_random(state);
    }
    if (NULL != library) {
        *(void **) &pack = dlsym(library, "mpi_pack_");
    }
    if (NULL != pack) {
        gpu_write(from, 0, data, sizeof(data));
        fill(to);
        pvars_read(&before);
        pack(from->addr, &count, &type, to->addr, &room, &position, &comm, &error);
        seen = since(&before);
        CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], 1);
        CHECK_INT(error, MPI_SUCCESS);
        CHECK_INT(position, AT + 64);
        check_packed(to, data, sizeof(data));
    } else if (0 == mpitest.rank) {
        printf("fortran: not tried, no mpi_pack_ in libmpi_mpifh.so.40\n");
    }
    gpu_memory_free(from);
    gpu_memory_free(to);
}

/* The GPU fails: an MPI error, and the position stays. */
static void fail(uint64_t *state)
{
    gpu_memory_t *from = gpu_memory(GPU_DEVICE, 3000), *to = gpu_memory(GPU_DEVICE, 3000);
    MPI_Datatype type = mpitest_type(MPITEST_IRREGULAR, 800, mpitest.seed); /* by a kernel */
    int failed = 0;

    (void) state;
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < TIMES; ++i) {
        int position = 0;
        const int rc =
            0 == i % 2 ? MPI_Pack(from->addr, 1, type, to->addr, 3000, &position, MPI_COMM_WORLD)
                       : MPI_Unpack(to->addr, 3000, &position, from->addr, 1, type, MPI_COMM_WORLD);

        failed += MPI_SUCCESS != rc;
        CHECK_INT(position, MPI_SUCCESS == rc ? 800 : 0);
    }
    CHECK(0 < failed);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Type_free(&type));
}

/* ---------------------------------------------------------------------------------------------
 * External forms
 * ------------------------------------------------------------------------------------------- */

static void external(uint64_t *state)
{
    enum {
        ROWS = 30,
        STRIDE = 5
    };
    MPI_Datatype type;
    mpitest_map_t *map;
    MPI_Aint size = 0;
    static char rep[] = "external32";

    (void) state;
    MPI_OK(MPI_Type_vector(ROWS, 2, STRIDE, MPI_INT, &type));
    MPI_OK(MPI_Type_commit(&type));
    map = mpitest_map(type, 3);
    MPI_OK(MPI_Pack_external_size(rep, 3, type, &size));
    for (int pair = 0; pair < 4; ++pair) {
        mpitest_buffer_t *reference = mpitest_buffer_of(map, GPU_HOST);
        mpitest_buffer_t *buffer = mpitest_buffer_of(map, kinds[pair / 2]);
        gpu_memory_t *memory = gpu_memory(kinds[pair % 2], AT + (size_t) size + AFTER);
        unsigned char *expected = malloc((size_t) size);
        MPI_Aint position = 0;
        pvars_t before, seen;

        mpitest_fill(reference, 5);
        MPI_OK(MPI_Pack_external(rep, reference->addr, 3, type, expected, size, &position));
        CHECK_INT((long) position, (long) size);
        mpitest_fill(buffer, 5);
        fill(memory);
        position = AT;
        pvars_read(&before);
        MPI_OK(MPI_Pack_external(rep, buffer->addr, 3, type, memory->addr, AT + size + AFTER,
                                 &position));
        CHECK_INT((long) position, (long) (AT + size));
        check_packed(memory, expected, (size_t) size);
        mpitest_clear(buffer);
        position = AT;
        MPI_OK(MPI_Unpack_external(rep, memory->addr, AT + size + AFTER, &position, buffer->addr, 3,
                                   type));
        CHECK_INT((long) position, (long) (AT + size));
        VERIFY(buffer, 5, map->size);
        seen = since(&before);
        CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], 3 == pair ? 0 : 2);
        free(expected);
        gpu_memory_free(memory);
        mpitest_buffer_free(buffer);
        mpitest_buffer_free(reference);
    }
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

/* ---------------------------------------------------------------------------------------------
 * MPI_Sendrecv_replace
 * ------------------------------------------------------------------------------------------- */

/* MPI_Isendrecv_replace in place of MPI_Sendrecv_replace. */
static bool is_nonblocking;

static int replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source,
                   int recvtag, MPI_Comm comm, MPI_Status *status)
{
#if 5 <= OMPI_MAJOR_VERSION
    if (is_nonblocking) {
        MPI_Request request;
        const int rc =
            MPI_Isendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm, &request);

        return MPI_SUCCESS != rc ? rc : MPI_Wait(&request, status);
    }
#endif
    return MPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm, status);
}

/* The data of each rank go to the one at 'distance'. */
static void rotate(mpitest_kind_t of, int bytes, gpu_kind_t kind, int distance)
{
    const int dest = (mpitest.rank + distance) % mpitest.size;
    const int source = (mpitest.rank + mpitest.size - distance) % mpitest.size;
    MPI_Datatype type = mpitest_type(of, bytes, mpitest.seed);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *buffer = mpitest_buffer_of(map, kind);
    const uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) ++mpitest.step, 0);
    MPI_Status status;

    mpitest_fill(buffer, key + (uint64_t) mpitest.rank);
    MPI_OK(replace(buffer->addr, 1, type, dest, 3, source, 3, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, source, 3, bytes);
    VERIFY(buffer, key + (uint64_t) source, bytes);

    /* with one neighbour only: what is sent stays, what is received replaces */
    mpitest_fill(buffer, key + (uint64_t) mpitest.rank);
    MPI_OK(replace(buffer->addr, 1, type, 0 == mpitest.rank ? MPI_PROC_NULL : 0, 4, MPI_PROC_NULL,
                   4, MPI_COMM_WORLD, &status));
    VERIFY(buffer, key + (uint64_t) mpitest.rank, bytes);
    for (int i = 1; 0 == mpitest.rank && i < mpitest.size; ++i) {
        MPI_OK(replace(buffer->addr, 1, type, MPI_PROC_NULL, 4, MPI_ANY_SOURCE, MPI_ANY_TAG,
                       MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, status.MPI_SOURCE, 4, bytes);
        VERIFY(buffer, key + (uint64_t) status.MPI_SOURCE, bytes);
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    mpitest_buffer_free(buffer);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static void ring(uint64_t *state)
{
    static const int sizes[] = {8, 900, 20000, 300000};
    pvars_t before, seen;

    (void) state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        int calls = 3;

        pvars_read(&before);
        rotate(MPITEST_FINE, sizes[i], GPU_DEVICE, 1);
        rotate(MPITEST_CONTIGUOUS, sizes[i], GPU_DEVICE, 1);
        for (int kind = 0; kind < 2; ++kind) {
            if (gpu_kind_available(0 == kind ? GPU_MANAGED : GPU_VMM)) {
                rotate(0 == kind ? MPITEST_IRREGULAR : MPITEST_NESTED, sizes[i],
                       0 == kind ? GPU_MANAGED : GPU_VMM, 1);
                ++calls;
            }
        }
        rotate(MPITEST_COARSE, sizes[i], GPU_DEVICE, 0);
        rotate(MPITEST_NEGATIVE, sizes[i], GPU_HOST, 1);
        seen = since(&before);
        CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], calls);
    }
}

#if 5 <= OMPI_MAJOR_VERSION

static void started(uint64_t *state)
{
    is_nonblocking = true;
    ring(state);
    is_nonblocking = false;
}

/* Several at once, of all sizes, that end in any order; the communicator is freed before. */
static void several(uint64_t *state)
{
    enum {
        CALLS = 12
    };
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    MPI_Datatype types[CALLS];
    mpitest_map_t *maps[CALLS];
    mpitest_buffer_t *buffers[CALLS];
    int bytes[CALLS];
    pvars_t before, seen;
    MPI_Comm comm;

    (void) state;
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    pvars_read(&before);
    for (int i = 0; i < CALLS; ++i) {
        bytes[i] = 8 << i;
        types[i] = mpitest_type(0 == i % 3 ? MPITEST_CONTIGUOUS : MPITEST_FINE, bytes[i], 1);
        maps[i] = mpitest_map(types[i], 1);
        buffers[i] = mpitest_buffer_of(maps[i], GPU_DEVICE);
        mpitest_fill(buffers[i], (uint64_t) (100 * i + mpitest.rank));
        MPI_OK(MPI_Isendrecv_replace(buffers[i]->addr, 1, types[i], mpitest_right(), i,
                                     mpitest_left(), 0 == i % 4 ? MPI_ANY_TAG : i, comm,
                                     &requests[i]));
    }
    /* An error without effect. It has no communicator: Open MPI calls the handler of one of these.
     */
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_INT(CLASS_OF(MPI_Cancel(&requests[CALLS / 2])), MPI_ERR_REQUEST);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_free(&comm));
    MPI_OK(MPI_Waitall(CALLS, requests, statuses));
    seen = since(&before);
    CHECK_INT(seen.value[PVARS_LIBRARY_CALLS], CALLS);
    for (int i = 0; i < CALLS; ++i) {
        CHECK(MPI_REQUEST_NULL == requests[i]);
        CHECK_STATUS(&statuses[i], mpitest_left(), i, bytes[i]);
        VERIFY(buffers[i], (uint64_t) (100 * i + mpitest_left()), bytes[i]);
        mpitest_buffer_free(buffers[i]);
        mpitest_map_free(maps[i]);
        MPI_OK(MPI_Type_free(&types[i]));
    }
}

#endif

#if 6 <= OMPI_MAJOR_VERSION

/* The forms with MPI_Count. */
static void counts(uint64_t *state)
{
    enum {
        ROWS = 100
    };
    gpu_memory_t *matrix = gpu_memory(GPU_DEVICE, ROWS * 4 * sizeof(int));
    gpu_memory_t *packed = gpu_memory(GPU_DEVICE, ROWS * sizeof(int));
    int data[4 * ROWS], seen[4 * ROWS];
    MPI_Request request;
    pvars_t before, counted;
    MPI_Count position = 0;
    MPI_Datatype column;

    (void) state;
    MPI_OK(MPI_Type_vector(ROWS, 1, 4, MPI_INT, &column));
    MPI_OK(MPI_Type_commit(&column));
    for (int i = 0; i < 4 * ROWS; ++i) {
        data[i] = 1000 * mpitest.rank + i;
    }
    gpu_write(matrix, 0, data, sizeof(data));
    pvars_read(&before);
    MPI_OK(MPI_Pack_c(matrix->addr, 1, column, packed->addr, (MPI_Count) packed->bytes, &position,
                      MPI_COMM_WORLD));
    CHECK_INT(position, ROWS * (int) sizeof(int));
    gpu_read(packed, 0, seen, packed->bytes);
    for (int i = 0; i < ROWS; ++i) {
        CHECK_INT(seen[i], data[4 * i]);
    }
    /* once around and back */
    MPI_OK(MPI_Sendrecv_replace_c(matrix->addr, 1, column, mpitest_right(), 5, mpitest_left(), 5,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    gpu_read(matrix, 0, seen, sizeof(seen));
    for (int i = 0; i < ROWS; ++i) {
        CHECK_INT(seen[4 * i], 1000 * mpitest_left() + 4 * i);
        CHECK_INT(seen[4 * i + 1], data[4 * i + 1]);
    }
    MPI_OK(MPI_Isendrecv_replace_c(matrix->addr, 1, column, mpitest_left(), 6, mpitest_right(), 6,
                                   MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    gpu_read(matrix, 0, seen, sizeof(seen));
    CHECK(0 == memcmp(seen, data, sizeof(data)));
    memset(seen, 0, sizeof(seen));
    gpu_write(matrix, 0, seen, sizeof(seen));
    position = 0;
    MPI_OK(MPI_Unpack_c(packed->addr, (MPI_Count) packed->bytes, &position, matrix->addr, 1, column,
                        MPI_COMM_WORLD));
    gpu_read(matrix, 0, seen, sizeof(seen));
    for (int i = 0; i < 4 * ROWS; ++i) {
        CHECK_INT(seen[i], 0 == i % 4 ? data[i] : 0);
    }
    counted = since(&before);
    CHECK_INT(counted.value[PVARS_LIBRARY_CALLS], 4);
    MPI_OK(MPI_Type_free(&column));
    gpu_memory_free(packed);
    gpu_memory_free(matrix);
}

#endif

/* The user asserts GPU memory on both sides: small messages are sent from system memory, which the
 * check of assertions does not look up. Only the receive is. */
static void asserted(uint64_t *state)
{
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, 64);
    pvars_t before, seen;
    MPI_Info info;
    MPI_Comm comm;

    (void) state;
    fill(memory);
    MPI_OK(MPI_Info_create(&info));
    MPI_OK(MPI_Info_set(info, "mpi_communication_pattern", "MPI_GPU_TO_GPU"));
    MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    pvars_read(&before);
    MPI_OK(MPI_Sendrecv_replace(memory->addr, 64, MPI_BYTE, mpitest_right(), 9, mpitest_left(), 9,
                                comm, MPI_STATUS_IGNORE));
    seen = since(&before);
    CHECK_INT(seen.value[PVARS_MEMORY_QUERIES], 1);
    check_filled(memory, 0);
    MPI_OK(MPI_Comm_free(&comm));
    MPI_OK(MPI_Info_free(&info));
    gpu_memory_free(memory);
}

/* Rank 0 sends more than the others receive. */
enum {
    LONG = 20000,
    SHORT = 16000
};

static void truncated(uint64_t *state)
{
    const int sent = 0 == mpitest.rank ? LONG : SHORT;
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, LONG);
    MPI_Comm comm;

    (void) state;
    /* the error handler of this communicator, and not the one of MPI_COMM_WORLD */
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int form = 0; form < (5 <= OMPI_MAJOR_VERSION ? 2 : 1); ++form) {
        fill(memory);
        is_nonblocking = 0 != form;
        CHECK_INT(mpitest_error_class(replace(memory->addr, sent, MPI_BYTE, mpitest_right(), 6,
                                              mpitest_left(), 6, comm, MPI_STATUS_IGNORE)),
                  1 < mpitest.size && 0 == mpitest_left() ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        check_filled(memory, (size_t) sent);
    }
    is_nonblocking = false;
    MPI_OK(MPI_Comm_free(&comm));
    gpu_memory_free(memory);
}

/*
 * Rank 0 sends a non-contiguous buffer in several memories, which is staged, and rank 1 receives
 * less of it into system memory: nothing is written behind that. (pml/ob1 of Open MPI 4.1 does, for
 * messages that it takes for contiguous.)
 */
static void truncated_staged(uint64_t *state)
{
    gpu_memory_t *device = gpu_memory(GPU_DEVICE, LONG / 2), *system = gpu_memory(GPU_HOST, LONG);
    int lengths[] = {LONG / 2, LONG / 2};
    MPI_Aint addresses[2];
    MPI_Datatype type;

    (void) state;
    fill(device);
    fill(system);
    memset(system->addr, 1, LONG / 2);
    MPI_OK(MPI_Get_address(device->addr, &addresses[0]));
    MPI_OK(MPI_Get_address(system->addr, &addresses[1]));
    MPI_OK(MPI_Type_create_hindexed(2, lengths, addresses, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (1 < mpitest.size && 0 == mpitest.rank) {
        MPI_OK(MPI_Sendrecv_replace(MPI_BOTTOM, 1, type, 1, 7, 1, 7, MPI_COMM_WORLD,
                                    MPI_STATUS_IGNORE));
    } else if (1 == mpitest.rank) {
        MPI_Request request;

        MPI_OK(MPI_Irecv(system->addr, SHORT, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Send(system->addr, 1, MPI_BYTE, 0, 7, MPI_COMM_WORLD));
        CHECK_INT(mpitest_error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
        check_filled(system, SHORT);
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Type_free(&type));
    gpu_memory_free(device);
    gpu_memory_free(system);
}

static const mpitest_part_t parts[] = {{"query", query},         {"layouts", layouts},
                                       {"steady", steady},       {"plain", plain},
                                       {"wrong", wrong},         {"mixed", mixed},
                                       {"fortran", fortran},     {"external", external},
                                       {"ring", ring},
#if 5 <= OMPI_MAJOR_VERSION
                                       {"started", started},     {"several", several},
#endif
#if 6 <= OMPI_MAJOR_VERSION
                                       {"counts", counts},
#endif
                                       {"truncated", truncated}, {"staged", truncated_staged},
                                       {"asserted", asserted},   {NULL, NULL}};
static const mpitest_part_t fail_parts[] = {{"fail", fail}, {NULL, NULL}};
static const mpitest_part_t module_parts[] = {{"module", module}, {NULL, NULL}};
static const mpitest_part_t other_parts[] = {{"absent", absent}, {"unused", unused}, {NULL, NULL}};

int main(int argc, char **argv)
{
    const char *path = getenv("UMRDDT_TEST_MODULE"), *gpu = getenv("UMRDDT_TEST_GPU");

    if (NULL != path && NULL == (loaded = dlopen(path, RTLD_LAZY | RTLD_LOCAL))) {
        fprintf(stderr, "gpu_calls: %s\n", dlerror());
        return 1;
    }
    mpitest_init(&argc, &argv, "gpu_calls", 1, MPI_THREAD_SINGLE);
    if (mpitest_has("unused") && NULL != gpu && 0 == strcmp("real", gpu)) {
        mpitest_skip("for machines without GPUs");
    }
    if (mpitest_has("absent") || mpitest_has("unused")) {
        mpitest_run(other_parts);
        return mpitest_finish();
    }
    if (NULL == loaded && !is_preloaded()) {
        mpitest_skip("needs libumrddt_mpi");
    }
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("needs umrddt");
    }
    if (NULL == loaded) {
        /* also before the application uses CUDA */
        query(NULL);
    }
    gpu_begin_all();
    mpitest_run(NULL != loaded ? module_parts : mpitest_has("fail") ? fail_parts : parts);
    pvars_close();
    return mpitest_finish();
}
