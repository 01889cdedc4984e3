/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Descriptions of another process's GPU memory, on the software CUDA driver. A process owns two
 * allocations. The input modifies their descriptions, which are imported, found again, accessed and
 * forgotten. An import never reaches beyond its description, and never shows another allocation
 * than that of the handle. With none in use the number of open ones is within the bounds.
 */

#include "gpu_owner.h"

#include "opal/constants.h"

#include "fuzz_cuda.h"

#define SIZE 10000

/* Imports at once. */
#define IMPORTS 4

static owner_memory_t memory[2];
static opal_umrddt_gpu_engine_t *engines[2];

/* Of opal_umrddt_gpu_peer_engine_for, which is not called here. */
int opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *of,
                               opal_umrddt_gpu_engine_t **engine)
{
    (void) of;
    (void) engine;
    return OPAL_ERR_NOT_AVAILABLE;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static owner_t owner;

    fuzz_cuda(*argv);
    if (3 == *argc && 0 == strcmp("owner", (*argv)[1])) {
        exit(owner_main(atoi((*argv)[2])));
    }
    owner = owner_start(NULL, "devices=2");
    for (int i = 0; i < 2; ++i) {
        memory[i] = owner_alloc(&owner, OWNER_DEVICE, i, SIZE + (size_t) i * 5000, 1 + i);
        FUZZ_CHECK(OPAL_SUCCESS == owner_export(&owner, &memory[i]));
        engines[i] = engine_make(i);
    }
    return 0;
}

/* Any other return value would lead to a crash. */
static bool is_known(int rc)
{
    return OPAL_SUCCESS == rc || OPAL_ERR_BAD_PARAM == rc || OPAL_ERR_NOT_SUPPORTED == rc
           || OPAL_ERR_OUT_OF_RESOURCE == rc;
}

static void check(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_export_t *said,
                  const opal_umrddt_gpu_import_t *import, fuzz_bytes_t *input)
{
    uint64_t low = fuzz_number(input, 8), high = fuzz_number(input, 8), address;
    int which = 0 == memcmp(said->handle, memory[0].export.handle, sizeof(said->handle)) ? 0 : 1;

    FUZZ_CHECK(1 == said->kind && opal_umrddt_gpu_export_check(said) == said->check
               && 0 != said->size && 0 != said->buffer_id);
    address = opal_umrddt_gpu_import_address(import, said->base, said->base + said->size, NULL);
    FUZZ_CHECK(0 != address);
    FUZZ_CHECK(
        0 == opal_umrddt_gpu_import_address(import, said->base, said->base + said->size + 1, NULL));
    FUZZ_CHECK(0 == opal_umrddt_gpu_import_address(import, said->base - 1, said->base + 1, NULL));
    if (0 != opal_umrddt_gpu_import_address(import, low, high, NULL)) {
        FUZZ_CHECK(said->base <= low && low <= high && high <= said->base + said->size);
    }
    if (0 == memcmp(said->handle, memory[which].export.handle, sizeof(said->handle))) {
        FUZZ_CHECK(said->size <= memory[which].size);
        FUZZ_CHECK(engine_sees(engine, address, said->size, 1 + which));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes_t input = {data, size};
    opal_umrddt_gpu_import_t *imports[IMPORTS] = {NULL};
    opal_umrddt_gpu_ipc_params_t bounds = {
        .imports = fuzz_below(&input, 4), .import_bytes = 20000, .exports = 4};
    opal_umrddt_gpu_ipc_stats_t stats;

    opal_umrddt_gpu_ipc_params(&bounds);
    for (int i = 0; i < 32 && 0 < input.left; ++i) {
        uint32_t at = fuzz_below(&input, IMPORTS), which = fuzz_byte(&input) & 1;
        uint8_t how = fuzz_byte(&input);
        opal_umrddt_gpu_engine_t *engine = engines[how & 1];
        opal_umrddt_gpu_export_t said = memory[which].export;
        uint64_t peer = fuzz_below(&input, 3);
        int rc;

        fuzz_patch(&input, &said, sizeof(said));
        if (0 == (how & 2)) {
            said.check = opal_umrddt_gpu_export_check(&said);
        }
        if (NULL != imports[at]) {
            opal_umrddt_gpu_import_release(imports[at]);
            imports[at] = NULL;
        } else if (0 == fuzz_below(&input, 4)) {
            (void) opal_umrddt_gpu_import_find(engine, peer, said.buffer_id, &imports[at]);
        } else {
            rc = opal_umrddt_gpu_import(engine, peer, &said, &imports[at]);
            FUZZ_CHECK(is_known(rc) && (OPAL_SUCCESS == rc) == (NULL != imports[at]));
            if (NULL != imports[at]) {
                check(engine, &said, imports[at], &input);
            }
        }
        if (0 == fuzz_below(&input, 8)) {
            opal_umrddt_gpu_ipc_forget(peer);
        }
    }
    for (int i = 0; i < IMPORTS; ++i) {
        if (NULL != imports[i]) {
            opal_umrddt_gpu_import_release(imports[i]);
        }
    }
    opal_umrddt_gpu_ipc_stats(&stats);
    FUZZ_CHECK(stats.open_now <= bounds.imports);
    opal_umrddt_gpu_ipc_forget(OPAL_UMRDDT_GPU_ALL_PEERS);
    opal_umrddt_gpu_ipc_stats(&stats);
    FUZZ_CHECK(0 == stats.open_now && 0 == stats.bytes_now);
    return 0;
}
