/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * hca_test NAME...      run these tests, in this order, on two processes
 * hca_test --absent     one process: the HCA must not be usable; prints why
 * hca_test --device     prints each process's device
 * hca_test --modex N    process 1 has no HCA and publishes variant N of modex data: 0 could be an
 * HCA's, the others could not; process 0 must see that
 */

#include "harness.h"

#include <arpa/inet.h>

#include <infiniband/verbs.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"

static const struct test *const groups[] = {
    put_tests,     notify_tests, pool_tests, key_tests,     keycache_tests, memory_tests,
    failure_tests, thread_tests, gpu_tests,  tiers_tests,   nested_tests,   direct_tests,
    module_tests,  scale_tests,  hca_tests,  rebuild_tests, room_tests};

static const struct test *find(const char *name)
{
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); ++g) {
        for (const struct test *test = groups[g]; NULL != test->name; ++test) {
            if (0 == strcmp(name, test->name)) {
                return test;
            }
        }
    }
    return NULL;
}

static void absent(void)
{
    for (int i = 0; i < 2; ++i) {
        CHECK_RC(OPAL_ERR_NOT_AVAILABLE, harness.hca->init());
        CHECK('\0' != harness.hca->why_not()[0], "no reason");
    }
    CHECK(0 == harness.hca->progress(), "progress of an HCA that is not there");
    CHECK(0 == harness.hca->stats()->mkeys_now, "mkeys left");
    CHECK(0 == harness.hca->stats()->reg_bytes_now, "memory left");
    printf("not available: %s\n", harness.hca->why_not());
}

/** What an HCA publishes, byte for byte; see btl_umr_endpoint.c. */
struct modex {
    uint32_t magic;
    uint16_t version;
    uint8_t arch, link, gid[16];
    uint16_t lid;
    uint8_t mtu, flags;
    uint16_t pkey, zero;
};

static void publish(int variant)
{
    unsigned char bytes[sizeof(struct modex) + 1];
    struct modex data = {
        htonl(0x554d5243), htons(2), 1, IBV_LINK_LAYER_INFINIBAND, {0}, htons(7), IBV_MTU_1024, 0,
        htons(0xffff),     0};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    union ibv_gid gid;
    size_t size = sizeof(data);
    int rc;

    CHECK(NULL != context && 0 == ibv_query_gid(context, 1, 0, &gid), "no device");
    memcpy(data.gid, gid.raw, sizeof(data.gid));
    ibv_close_device(context);
    ibv_free_device_list(list);

    switch (variant) {
    case 1:
        size = 1;
        break;
    case 2:
        size -= 1;
        break;
    case 3:
        size += 1;
        break;
    case 4:
        data.magic ^= 1;
        break;
    case 5:
        data.version = htons(1);
        break;
    case 6:
        data.arch = 2;
        break;
    case 7:
        data.link = IBV_LINK_LAYER_ETHERNET;
        break;
    case 8:
        data.mtu = 0;
        break;
    case 9:
        data.mtu = 6;
        break;
    case 10:
        data.gid[3] ^= 0x10;
        break;
    case 11:
        for (size_t i = 0; i < sizeof(data); ++i) {
            ((unsigned char *) &data)[i] = (unsigned char) harness_random(256);
        }
        break;
    case 12:
        return; /* nothing at all */
    case 13:
        data.pkey = htons(0x8001);
        break;
    default:
        break;
    }
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, &data, sizeof(data));
    OPAL_MODEX_SEND(rc, UMRDDT_PMIX_GLOBAL, &harness.component->super.btl_version, bytes, size);
    CHECK(OPAL_SUCCESS == rc, "modex: %d", rc);
}

static void modex(int variant)
{
    if (0 == harness.rank) {
        struct opal_proc_t *proc =
            (struct opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, 1);
        mca_btl_umr_endpoint_t *endpoint = NULL;

        CHECK_RC(OPAL_SUCCESS, harness.hca->init());
        harness_exchange_modex();
        for (int i = 0; i < 2; ++i) {
            int rc = harness.hca->endpoint_get(proc, &endpoint);

            CHECK((0 == variant ? OPAL_SUCCESS : OPAL_ERR_UNREACH) == rc, "variant %d: %d", variant,
                  rc);
            CHECK((0 == variant) == (NULL != endpoint), "variant %d: output", variant);
        }
        CHECK((0 == variant ? 1 : 0) == harness.hca->stats()->endpoints_now, "%llu endpoints",
              (unsigned long long) harness.hca->stats()->endpoints_now);
    } else {
        publish(variant);
        harness_exchange_modex();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == harness.rank) {
        harness.hca->fini();
        printf("ok modex %d\n", variant);
    }
}

int main(int argc, char **argv)
{
    char *seed = getenv("UMRDDT_TEST_SEED");

    if (!harness_open(&argc, &argv)) {
        fprintf(stderr, "no btl/umr with this Open MPI: is it in the component path?\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    harness.seed = NULL == seed ? 20261120u : (unsigned) strtoul(seed, NULL, 0);

    if (2 == argc && 0 == strcmp("--absent", argv[1])) {
        absent();
    } else if (3 == argc && 0 == strcmp("--modex", argv[1])) {
        modex(atoi(argv[2]));
    } else if (2 == argc && 0 == strcmp("--device", argv[1])) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->init());
        printf("rank %d: %s\n", harness.rank, harness.hca->caps()->device);
        harness.hca->fini();
    } else if (2 == argc && 0 == strcmp("--hcas", argv[1])) {
        const mca_btl_umr_caps_t *caps;

        CHECK_RC(OPAL_SUCCESS, harness.hca->init());
        printf("rank %d:", harness.rank);
        for (unsigned int i = 0; harness.hca->hca(i, &caps, NULL); ++i) {
            printf(" %s", caps->device);
        }
        printf("\n");
        harness.hca->fini();
    } else if (2 == argc && 0 == strcmp("--lanes", argv[1])) {
        hcas_print_lanes();
    } else if (2 == argc && 0 == strcmp("--table", argv[1])) {
        hcas_print_table();
    } else if (2 == argc && 0 == strcmp("--no-route", argv[1])) {
        hcas_print_no_route();
    } else if (2 == argc && 0 == strcmp("--gpus", argv[1])) {
        hcas_print_gpus();
    } else {
        CHECK(2 == harness.size, "two processes, not %d", harness.size);
        harness_connect();
        for (int i = 1; i < argc; ++i) {
            const struct test *test = find(argv[i]);

            CHECK(NULL != test, "no test \"%s\"", argv[i]);
            harness_barrier();
            test->run();
            harness_barrier();
            if (0 == harness.rank) {
                printf("ok %s\n", argv[i]);
                fflush(stdout);
            }
        }
        harness_disconnect();
    }
    harness_close();
    return 0;
}
