/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_schemes.h"
#include "bench_util.h"

const char bench_schemes_names[] = "auto, umr, sgl, ipc, pack-gdr, pack-staged, pack-host, base";

static const char *const known[] = {"auto",     "umr",         "direct",    "ipc",
                                    "pack-gdr", "pack-staged", "pack-host", "host"};

const char *bench_schemes_canonical(const char *name)
{
    return 0 == strcmp("sgl", name) ? "direct" : 0 == strcmp("base", name) ? "host" : name;
}

const char *bench_schemes_find(const char *name)
{
    name = bench_schemes_canonical(name);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (0 == strcmp(known[i], name)) {
            return known[i];
        }
    }
    return NULL;
}

bool bench_schemes_parse(const char *list, bench_schemes_t *schemes)
{
    schemes->count = 0;
    do {
        const size_t length = strcspn(list, ",");
        const char *name;
        char text[16];

        if (length >= sizeof(text)) {
            return false;
        }
        memcpy(text, list, length);
        text[length] = '\0';
        name = bench_schemes_find(text);
        if (NULL == name || bench_schemes_has(schemes, name)) {
            return false;
        }
        schemes->name[schemes->count++] = name;
        list += length;
    } while (',' == *list++);
    return true;
}

bool bench_schemes_has(const bench_schemes_t *schemes, const char *name)
{
    for (int i = 0; i < schemes->count; ++i) {
        if (0 == strcmp(name, schemes->name[i])) {
            return true;
        }
    }
    return false;
}

void bench_schemes_comm(const char *scheme, const char *pattern, MPI_Comm *comm)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "pml_umrddt_scheme", scheme);
    if (NULL != pattern) {
        MPI_Info_set(info, "mpi_communication_pattern", pattern);
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm);
    MPI_Info_free(&info);
}

/* ---- the table ---- */

typedef struct row_t {
    const char *name; /* of the layout, which lives in the table of layouts */
    uint64_t bytes;
    double rounds[BENCH_SCHEMES_MOST][BENCH_ROUNDS_MOST]; /* the median of each */
    int count;                                            /* of rounds */
    double median[BENCH_SCHEMES_MOST];                    /* of these */
    bool went[BENCH_SCHEMES_MOST];                        /* by this scheme, in all rounds */
    bool pieces;
} row_t;

struct bench_schemes_table_t {
    const bench_schemes_t *schemes;
    row_t *rows;
    size_t count, room;
};

bench_schemes_table_t *bench_schemes_table_new(const bench_schemes_t *schemes)
{
    bench_schemes_table_t *table = bench_alloc(sizeof(*table));

    memset(table, 0, sizeof(*table));
    table->schemes = schemes;
    return table;
}

void bench_schemes_table_free(bench_schemes_table_t *table)
{
    free(table->rows);
    free(table);
}

/* Whether the messages used the requested scheme: those of the base PML may be staged; and auto is
 * any. */
static bool went_by(const char *requested, const char *scheme)
{
    return 0 == strcmp(requested, scheme) || 0 == strcmp("auto", requested)
           || (0 == strcmp("host", requested) && 0 == strcmp("staged", scheme));
}

/* The median of every @p step th of some values from @p first on. */
static double median_of(const double *values, int count, int first, int step)
{
    double some[BENCH_ROUNDS_MOST];
    int taken = 0;

    for (int i = first; i < count; i += step) {
        some[taken++] = values[i];
    }
    return bench_times_median(some, taken);
}

void bench_schemes_table_add(bench_schemes_table_t *table, int round, int which,
                             const bench_result_t *result)
{
    bool went = !result->failed && went_by(table->schemes->name[which], result->scheme);
    row_t *row;

    if (0 == which && 0 == round) {
        if (table->count == table->room) {
            table->room = 0 == table->room ? 32 : 2 * table->room;
            table->rows = realloc(table->rows, table->room * sizeof(*table->rows));
            if (NULL == table->rows) {
                bench_fatal("no memory");
            }
        }
        row = &table->rows[table->count++];
        memset(row, 0, sizeof(*row));
        row->name = result->name;
        row->bytes = result->bytes;
    }
    row = &table->rows[table->count - 1];
    row->count = round + 1;
    row->rounds[which][round] = result->times[BENCH_VARIANT_MAIN].median;
    row->median[which] = median_of(row->rounds[which], row->count, 0, 1);
    row->pieces = row->pieces || result->noncontiguous;
    row->went[which] = went && (0 == round || row->went[which]);
}

/* True if one of two times is no more than a tenth longer than the other. */
static bool near_each_other(double a, double b)
{
    return a <= 1.1 * b && b <= 1.1 * a;
}

/* How auto compares with the best of the schemes that were forced; and what that is worth: how this
 * one's odd rounds compare with its even ones. */
static void print_auto(const bench_schemes_table_t *table, FILE *file)
{
    size_t compared = 0, near = 0, same = 0;
    double worst = 0;
    const char *where = "";
    int which, chosen = -1;

    for (which = 0; which < table->schemes->count; ++which) {
        if (0 == strcmp("auto", table->schemes->name[which])) {
            chosen = which;
        }
    }
    for (size_t i = 0; 0 <= chosen && i < table->count; ++i) {
        const row_t *row = &table->rows[i];
        double best = 0;
        int by = -1;

        for (which = 0; which < table->schemes->count; ++which) {
            if (chosen != which && row->went[which] && (0 > by || row->median[which] < best)) {
                best = row->median[which];
                by = which;
            }
        }
        if (!row->went[chosen] || 0 == best) {
            continue;
        }
        ++compared;
        near += row->median[chosen] <= 1.1 * best ? 1 : 0;
        same += 1 < row->count
                        && near_each_other(median_of(row->rounds[by], row->count, 0, 2),
                                           median_of(row->rounds[by], row->count, 1, 2))
                    ? 1
                    : 0;
        if (worst < row->median[chosen] / best) {
            worst = row->median[chosen] / best;
            where = row->name;
        }
    }
    if (0 < compared) {
        fprintf(
            file,
            "# auto: within 10 %% of the best of the others for %zu of %zu layouts (%.1f %%), at "
            "worst %.2f times as long (%s)\n",
            near, compared, 100.0 * (double) near / (double) compared, worst, where);
    }
    if (0 < compared && 1 < table->rows[0].count) {
        fprintf(file,
                "# chance: of the best one itself, every other round is within 10 %% of the others "
                "for %zu of %zu (%.1f %%)\n",
                same, compared, 100.0 * (double) same / (double) compared);
    }
}

size_t bench_schemes_table_print(const bench_schemes_table_t *table, FILE *file)
{
    size_t elsewhere = 0, i;
    int which;

    fprintf(file, "# by scheme, one way, median in us; -: not by this scheme\n%-25s %9s", "layout",
            "bytes");
    for (which = 0; which < table->schemes->count; ++which) {
        fprintf(file, " %11s", table->schemes->name[which]);
    }
    fprintf(file, "  best\n");
    for (i = 0; i < table->count; ++i) {
        const row_t *row = &table->rows[i];
        int best = -1;

        fprintf(file, "%-25s %9" PRIu64, row->name, row->bytes);
        for (which = 0; which < table->schemes->count; ++which) {
            if (!row->went[which]) {
                fprintf(file, " %11s", "-");
                elsewhere += row->pieces ? 1 : 0;
                continue;
            }
            fprintf(file, " %11.2f", row->median[which]);
            if (0 > best || row->median[which] < row->median[best]) {
                best = which;
            }
        }
        fprintf(file, "  %s\n", 0 > best ? "-" : table->schemes->name[best]);
    }
    print_auto(table, file);
    fflush(file);
    return elsewhere;
}
