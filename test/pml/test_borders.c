/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The borders between each two schemes that can compete: for each pair a machine where both are
 * equally fast at a size, a number of pieces, a length of blocks or a number of uses that follows
 * from arithmetic by hand. On either side of it the right scheme is selected. Another tuning file
 * moves the border in proportion to its parameter, and with it the selection for a message.
 *
 * Schemes that can compete are those that a sender may offer: CUDA IPC, the HCA or both, together
 * with packing schemes; and the base PML with all.
 */

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../common/check.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"

#define BIT(scheme_id) (1u << (scheme_id))
#define IPC            MCA_PML_UMRDDT_SCHEME_IPC
#define UMR            MCA_PML_UMRDDT_SCHEME_UMR
#define DIRECT         MCA_PML_UMRDDT_SCHEME_DIRECT
#define GDR            MCA_PML_UMRDDT_SCHEME_PACK_GDR
#define STAGED         MCA_PML_UMRDDT_SCHEME_PACK_STAGED
#define PACKED         MCA_PML_UMRDDT_SCHEME_PACK_HOST
#define HOST           MCA_PML_UMRDDT_SCHEME_BASE

/* What lies between the two. */
typedef enum axis_t {
    BYTES,  /* of a message of 10 pieces */
    PIECES, /* of 1000 bytes each side; of the receiver alone: WRITES */
    WRITES,
    BLOCKS, /* bytes of each, of a message of 1 MiB */
    USES    /* of a message of 10000 bytes */
} axis_t;

/* A tuning parameter of a machine where everything else takes no time. */
typedef struct set_t {
    size_t offset; /* in the tuning parameters; the first value of a curve, whose values are all the
                      same */
    bool curve;
    double value;
} set_t;

#define FIGURE(name, value)                                \
    {                                                      \
        offsetof(opal_umrddt_tuning_t, name), false, value \
    }
#define CURVE(name, value)                                \
    {                                                     \
        offsetof(opal_umrddt_tuning_t, name), true, value \
    }
#define SETS 6

typedef struct border_t {
    mca_pml_umrddt_scheme_id_t below, above; /* the border, which wins */
    axis_t axis;
    bool gpu; /* both sides */
    double at;
    double moves; /* twice the value of the first parameter moves it by this factor */
    double chunk; /* of a packed message; 0: all in one */
    set_t sets[SETS];
} border_t;

/* GPUs that copy bytes at 100 bytes/us, or write to and read from system memory at that rate; a
 * slow base PML. */
#define MOVING  FIGURE(gpu_out_rate, 100), FIGURE(gpu_in_rate, 100)
#define WRITING CURVE(gpu_pack_host, 100), CURVE(gpu_unpack_host, 100)
#define WIRE    FIGURE(near_rate, 100)

static const border_t borders[] = {
    /* Keys and writes. 10 us more a key and side, 1 us a write: the receiver's, and one of the
       sender. */
    {DIRECT, UMR, WRITES, false, 19, 39.0 / 19, 0, {FIGURE(key_map, 10), FIGURE(hca_write, 1)}},
    {DIRECT, UMR, USES, false, 20, 2, 0, {FIGURE(key_map, 100), FIGURE(hca_write, 0.5)}},
    /* Between GPUs, by the HCA or packed. A launch of 20 us at either side, a piece of 0.5 us. */
    {UMR,
     GDR,
     PIECES,
     true,
     40,
     2,
     0,
     {FIGURE(gpu_launch, 20), FIGURE(hca_gpu_gather, 0.5), FIGURE(hca_gpu_scatter, 0.5)}},
    {GDR, UMR, USES, true, 5, 2, 0, {FIGURE(key_map, 100), FIGURE(gpu_launch, 20)}},
    {DIRECT, GDR, WRITES, true, 39, 79.0 / 39, 0, {FIGURE(gpu_launch, 20), FIGURE(hca_write, 1)}},
    {GDR, DIRECT, USES, true, 5, 2, 0, {FIGURE(register_base, 100), FIGURE(gpu_launch, 20)}},
    /* an HCA at 100 bytes/us to a GPU, against two launches of 20 us */
    {UMR, STAGED, BYTES, true, 4000, 2, 0, {FIGURE(gpu_launch, 20), FIGURE(hca_gpu_rate, 100)}},
    {STAGED, UMR, USES, true, 5, 2, 0, {FIGURE(key_map, 100), FIGURE(gpu_launch, 20)}},
    {DIRECT, STAGED, BYTES, true, 4000, 2, 0, {FIGURE(gpu_launch, 20), FIGURE(hca_gpu_rate, 100)}},
    {STAGED, DIRECT, USES, true, 5, 2, 0, {FIGURE(register_base, 100), FIGURE(gpu_launch, 20)}},
    {UMR, PACKED, BYTES, true, 4000, 2, 0, {FIGURE(gpu_launch, 20), FIGURE(hca_gpu_rate, 100)}},
    {PACKED, UMR, USES, true, 5, 2, 0, {FIGURE(key_map, 100), FIGURE(gpu_launch, 20)}},
    {DIRECT, PACKED, BYTES, true, 4000, 2, 0, {FIGURE(gpu_launch, 20), FIGURE(hca_gpu_rate, 100)}},
    {PACKED, DIRECT, USES, true, 5, 2, 0, {FIGURE(register_base, 100), FIGURE(gpu_launch, 20)}},
    /* CUDA IPC that starts after 30 us, compared with slower transfers. */
    {UMR, IPC, BYTES, true, 3000, 2, 0, {FIGURE(ipc_latency, 30), FIGURE(hca_gpu_rate, 100)}},
    {DIRECT, IPC, BYTES, true, 3000, 2, 0, {FIGURE(ipc_latency, 30), FIGURE(hca_gpu_rate, 100)}},
    {GDR, IPC, BYTES, true, 3000, 2, 0, {FIGURE(ipc_latency, 30), FIGURE(hca_gpu_rate, 100)}},
    {STAGED, IPC, BYTES, true, 1500, 2, 0, {FIGURE(ipc_latency, 30), MOVING}},
    {PACKED, IPC, BYTES, true, 1500, 2, 0, {FIGURE(ipc_latency, 30), WRITING}},
    /* ... against what the HCA needs once, for 40 us more a message */
    {IPC, UMR, USES, true, 5, 2, 0, {FIGURE(key_map, 100), FIGURE(ipc_latency, 40)}},
    {IPC, DIRECT, USES, true, 5, 2, 0, {FIGURE(register_base, 100), FIGURE(ipc_latency, 40)}},
    /* ... against an HCA that begins after 30 us, where kernels look blocks up */
    {IPC, UMR, BYTES, true, 3000, 2, 0, {CURVE(gpu_list, 100), FIGURE(hca_latency, 30)}},
    /* and small blocks, of which copies between GPUs are slow: 20 us of launches */
    {IPC, STAGED, BYTES, true, 2000, 2, 0, {FIGURE(gpu_launch, 10), CURVE(ipc_copy, 100)}},
    /* Packed, over three transports. An HCA that starts after 30 us; copies; a GPU that writes to
       system memory. */
    {STAGED, GDR, BYTES, true, 1500, 2, 0, {FIGURE(hca_latency, 30), MOVING}},
    {PACKED, GDR, BYTES, true, 1500, 2, 0, {FIGURE(hca_latency, 30), WRITING}},
    /* (the curve is made by hand, see below: 100 bytes/us where blocks have 512 bytes, as moving
       has) */
    {STAGED, PACKED, BLOCKS, true, 512, 8, 0, {MOVING}},
    /* The base PML, which copies by the CPU at 200 bytes/us on either side, or out of GPUs
     * before all else.
     */
    {HOST, UMR, BYTES, false, 3000, 2, 0, {FIGURE(hca_latency, 30), CURVE(cpu_copy, 200)}},
    {HOST, UMR, USES, false, 2, 2, 0, {FIGURE(key_map, 100), CURVE(cpu_copy, 200)}},
    {HOST, DIRECT, BYTES, false, 3000, 2, 0, {FIGURE(hca_latency, 30), CURVE(cpu_copy, 200)}},
    {HOST, DIRECT, USES, false, 2, 2, 0, {FIGURE(register_base, 100), CURVE(cpu_copy, 200)}},
    {HOST, IPC, BYTES, true, 3000, 2, 0, {FIGURE(ipc_latency, 30), FIGURE(near_rate, 100)}},
    {HOST, GDR, BYTES, true, 3000, 2, 0, {FIGURE(hca_latency, 30), FIGURE(near_rate, 100)}},
    /* three stages of 10 us for 1000 bytes that overlap, but an answer and a message a chunk: with
       n chunks 2 + 10 + 11 + 10 + 11 (n - 1) against 1 + 30 n (and 3 + 30 n from 4096 bytes on) */
    {HOST,
     STAGED,
     BYTES,
     true,
     21000 / 19.0,
     209.0 / 189,
     1000,
     {FIGURE(near_latency, 1), WIRE, MOVING, WRITING}},
    /* the same, but that the GPU's kernels do what its copies did */
    {HOST,
     PACKED,
     BYTES,
     true,
     21000 / 19.0,
     209.0 / 189,
     1000,
     {FIGURE(near_latency, 1), WIRE, WRITING}},
};
#define COUNT (sizeof(borders) / sizeof(borders[0]))

static const char path[] = "test_borders.tmp";

/* A machine where only the set parameters take time. */
static void machine(const border_t *border, double first, opal_umrddt_tuning_t *tuning)
{
    double *all = (double *) tuning;

    for (size_t i = 0; i < sizeof(*tuning) / sizeof(double); ++i) {
        all[i] = 1e12; /* rates, and below what is none */
    }
#define SMALL(name, value, help)          \
    if (NULL == strstr(#name, "_rate")) { \
        tuning->name = 1e-6;              \
    }
    OPAL_UMRDDT_TUNING_VALUES(SMALL)
    for (size_t i = 0; i < SETS && 0 < border->sets[i].value; ++i) {
        const set_t *set = &border->sets[i];
        double *figure = (double *) ((char *) tuning + set->offset);

        for (int j = 0; j < (set->curve ? OPAL_UMRDDT_TUNING_CURVE_POINTS : 1); ++j) {
            figure[j] = set->value * (0 == i ? first : 1);
        }
    }
    if (BLOCKS == border->axis) {
        /* as rates double from 8 bytes on for each factor of 8, those of 512 bytes are 100, and
         * twice as quick a copy out (the first figure) is met by blocks 8 times as long, if in
         * follows */
        for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
            tuning->gpu_pack_host[i] = tuning->gpu_unpack_host[i] = 25 * pow(2, i);
        }
        tuning->gpu_in_rate = tuning->gpu_out_rate;
    }
}

static opal_umrddt_select_case_t message(const border_t *border, double x)
{
    opal_umrddt_select_case_t what = {.bytes = 10000,
                                      .near = true,
                                      .known = ~0u,
                                      .uses = 1,
                                      .write_pieces = 1,
                                      .depth = 4,
                                      .eager = OPAL_UMRDDT_SELECT_EAGER};

    what.from.pieces = what.to.pieces = 10;
    what.from.gpu = what.to.gpu = border->gpu;
    what.from.listed = what.to.listed =
        offsetof(opal_umrddt_tuning_t, gpu_list) == border->sets[0].offset;
    switch (border->axis) {
    case BYTES:
        what.bytes = (uint64_t) llround(x);
        break;
    case PIECES:
        what.from.pieces = what.to.pieces = (uint64_t) llround(x);
        what.bytes = 1000 * what.to.pieces;
        break;
    case WRITES:
        what.from.pieces = 1;
        what.to.pieces = (uint64_t) llround(x);
        /* those of first messages, so that keys count */
        what.known = UMR == border->above ? 0 : ~0u;
        break;
    case BLOCKS:
        what.bytes = 1u << 20;
        what.from.pieces = what.to.pieces = (uint64_t) llround((double) what.bytes / x);
        break;
    case USES:
        what.from.pieces = DIRECT == border->below ? 1 : 10;
        what.to.pieces = DIRECT == border->below ? 19 : 10;
        what.known = 0;
        what.uses = x;
        break;
    }
    what.chunk = 0 < border->chunk ? (uint64_t) border->chunk : what.bytes;
    return what;
}

static mca_pml_umrddt_scheme_id_t best(const border_t *border, const opal_umrddt_tuning_t *tuning,
                                       const opal_umrddt_select_case_t *what)
{
    double times[MCA_PML_UMRDDT_SCHEMES];

    return opal_umrddt_select_best(tuning, what, BIT(border->below) | BIT(border->above), times);
}

/* The choice on both sides of @p at, up to a 20th and 20 times as far. */
static void both_sides(const border_t *border, const opal_umrddt_tuning_t *tuning, double at)
{
    for (double x = at / 20; x < 20 * at; x *= 1.007) {
        opal_umrddt_select_case_t what = message(border, x);
        double near =
            1.5 < at && (PIECES == border->axis || WRITES == border->axis) ? (at + 0.6) / at : 1.01;
        mca_pml_umrddt_scheme_id_t scheme_id;

        if (at / near < x && x < at * near) {
            continue;
        }
        if (USES == border->axis && 1 > x) {
            continue;
        }
        scheme_id = best(border, tuning, &what);
        if ((x < at ? border->below : border->above) != scheme_id) {
            printf("%s, %s: border at %g, at %g it is %s\n",
                   mca_pml_umrddt_scheme_names[border->below],
                   mca_pml_umrddt_scheme_names[border->above], at, x,
                   mca_pml_umrddt_scheme_names[scheme_id]);
        }
        CHECK((x < at ? border->below : border->above) == scheme_id);
    }
}

/* Written to a file, and read as every job reads it. */
static void by_file(opal_umrddt_tuning_t *tuning)
{
    static opal_umrddt_tuning_measured_t measured;
    char wrong[OPAL_UMRDDT_TUNING_TEXT];
    FILE *file = fopen(path, "w");

    memset(measured.figure, 1, sizeof(measured.figure));
    CHECK(NULL != file);
    CHECK(0 == opal_umrddt_tuning_write(file, "any", tuning, &measured));
    CHECK(0 == fclose(file));
    memset(tuning, 0, sizeof(*tuning));
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          == opal_umrddt_tuning_read(path, "a machine", tuning, NULL, wrong));
    CHECK(0 == unlink(path));
}

static void moved(const border_t *border)
{
    opal_umrddt_tuning_t one, two;
    opal_umrddt_select_case_t what = message(border, border->at * sqrt(border->moves));

    machine(border, 1, &one);
    both_sides(border, &one, border->at);
    machine(border, 2, &two);
    both_sides(border, &two, border->at * border->moves);
    /* a message between the two borders, on two machines that differ in one parameter of the tuning
     * file */
    by_file(&one);
    by_file(&two);
    CHECK(border->above == best(border, &one, &what));
    CHECK(border->below == best(border, &two, &what));
}

/* What is there already costs nothing, however seldom it is used. */
static void repeated(const border_t *border)
{
    opal_umrddt_select_case_t what = message(border, 1);
    opal_umrddt_tuning_t tuning;

    machine(border, 1, &tuning);
    CHECK(border->below == best(border, &tuning, &what));
    what.known = BIT(border->above);
    CHECK(border->above == best(border, &tuning, &what));
}

static bool meet(int a, int b)
{
    return a != b;
}

int main(void)
{
    unsigned steady[MCA_PML_UMRDDT_SCHEMES] = {0}, first[MCA_PML_UMRDDT_SCHEMES] = {0};

    for (size_t i = 0; i < COUNT; ++i) {
        const border_t *border = &borders[i];
        unsigned *which = USES == border->axis ? first : steady;

        CHECK(meet((int) border->below, (int) border->above));
        which[border->below] |= BIT(border->above);
        which[border->above] |= BIT(border->below);
        moved(border);
        if (USES == border->axis) {
            repeated(border);
        }
    }
    /* no pair is missing, and none that creates resources for a first message lacks the case
     * without them */
    for (int a = 0; a < MCA_PML_UMRDDT_SCHEMES; ++a) {
        for (int b = 0; b < MCA_PML_UMRDDT_SCHEMES; ++b) {
            const bool hca = (int) UMR == a || (int) DIRECT == a;

            CHECK(!meet(a, b) || 0 != (steady[a] & BIT(b)));
            CHECK(!hca || !meet(a, b) || 0 != (first[a] & BIT(b)));
        }
    }
    printf("test_borders: %lu checks\n", checks);
    return 0;
}
