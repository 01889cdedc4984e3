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
 * All spellings of a layout are equal, and different layouts are not.
 *
 *     test_spellings [count [seed]]      so many different spellings of each layout
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "spellings.h"

#define DEFAULT_COUNT 60
#define DEFAULT_SEED  20261121

/* What a regular layout may cost, in bytes, however it is spelled and many blocks it has. */
#define SMALL 1024

static int failures;

/* What spellings are made of: each must be in one of them. */
static const char *const constructors[] = {
    "contiguous(",     "dup(",       "indexed(",         "struct(",          "vector(",
    "@darray ",        "@hindexed ", "@hindexed_block ", "@struct ",         "@subarray ",
    ",contiguous(",    ",darray(",   ",hindexed(",       ",hindexed_block(", ",hvector(",
    ",indexed_block(", ",resized(",  ",subarray_C(",     ",subarray_F(",     ",vector(",
};
#define CONSTRUCTORS (sizeof(constructors) / sizeof(constructors[0]))
static bool seen[CONSTRUCTORS];

/* All types live to the end: the cache goes by their addresses. */
static opal_iov_cache_t *cache;
static MPI_Datatype *kept;
static size_t cached_count;

static int watch(opal_iov_cache_t *watcher, const opal_datatype_t *type, void *context)
{
    (void) watcher;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

static void fail(int layout, const char *what, const spelling_t *spelling)
{
    fprintf(stderr, "FAILED: %s: %s\n    spelling: %s\n", spellings_name(layout), what,
            spelling->text);
    ++failures;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static size_t count_different(char **texts, size_t n)
{
    size_t different = 0, i;

    qsort(texts, n, sizeof(*texts), by_text);
    for (i = 0; i < n; ++i) {
        different += 0 == i || 0 != strcmp(texts[i - 1], texts[i]);
    }
    return different;
}

/* Draw until there are enough different ones; the first one's form is what all must be equal to. */
static opal_iov_cache_form_t *check_layout(typegen_rng_t *rng, int layout, size_t wanted)
{
    opal_iov_cache_layout_t *entry = NULL, *got;
    opal_iov_cache_form_t *first = NULL;
    char **texts = calloc(20 * wanted, sizeof(*texts));
    size_t n, different = 0, i;

    for (n = 0; n < 20 * wanted && different < wanted; ++n) {
        opal_iov_cache_form_t *form = NULL;
        spelling_t spelling;
        const char *wrong;

        spellings_draw(rng, layout, &spelling);
        texts[n] = strdup(spelling.text);
        for (i = 0; i < CONSTRUCTORS; ++i) {
            seen[i] = seen[i] || NULL != strstr(spelling.text, constructors[i]);
        }
        if (OPAL_SUCCESS
            != opal_iov_cache_form_create(opal_type(spelling.type), (size_t) spelling.count,
                                          &form)) {
            fail(layout, "no form", &spelling);
            MPI_Type_free(&spelling.type);
            continue;
        }
        wrong = opal_iov_cache_form_check(form);
        if (NULL != wrong) {
            fail(layout, wrong, &spelling);
        }
        if (opal_iov_cache_form_bytes(form) > SMALL) {
            fail(layout, "more than a KiB", &spelling);
        }
        if (NULL == first) {
            first = form;
        } else {
            if (!opal_iov_cache_form_equal(first, form)) {
                fail(layout, "not equal to the first spelling", &spelling);
            }
            if (opal_iov_cache_form_hash(first) != opal_iov_cache_form_hash(form)) {
                fail(layout, "another hash than the first spelling", &spelling);
            }
            opal_iov_cache_form_free(form);
        }
        if (OPAL_SUCCESS
            != opal_iov_cache_get(cache, opal_type(spelling.type), (size_t) spelling.count, &got)) {
            fail(layout, "not in the cache", &spelling);
        } else {
            if (NULL != entry && got != entry) {
                fail(layout, "another layout in the cache than the first spelling's", &spelling);
            }
            entry = got;
            OBJ_RELEASE(got); /* the cache holds it */
        }
        kept[cached_count++] = spelling.type;
        if (wanted <= n + 1) {
            different = count_different(texts, n + 1);
        }
    }
    if (different < wanted) {
        fprintf(stderr, "FAILED: %s: only %zu different spellings\n", spellings_name(layout),
                different);
        ++failures;
    }
    for (i = 0; i < n; ++i) {
        free(texts[i]);
    }
    free(texts);
    return first;
}

int main(int argc, char **argv)
{
    size_t wanted = 1 < argc ? strtoull(argv[1], NULL, 0) : DEFAULT_COUNT;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED;
    opal_iov_cache_form_t *forms[SPELLINGS_LAYOUTS];
    opal_iov_cache_stats_t stats;
    typegen_rng_t rng;
    size_t k;
    int i, j;

    singleton_init(MPI_THREAD_SINGLE);
    typegen_seed(&rng, seed);
    kept = malloc(20 * wanted * SPELLINGS_LAYOUTS * sizeof(*kept));
    opal_iov_cache_create((size_t) 1 << 30, watch, NULL, &cache);
    for (i = 0; i < SPELLINGS_LAYOUTS; ++i) {
        forms[i] = check_layout(&rng, i, wanted);
    }
    for (k = 0; k < CONSTRUCTORS; ++k) {
        if (!seen[k]) {
            fprintf(stderr, "FAILED: no spelling has '%s'\n", constructors[k]);
            ++failures;
        }
    }
    for (i = 0; i < SPELLINGS_LAYOUTS; ++i) {
        for (j = 0; j < i && NULL != forms[i]; ++j) {
            if (NULL != forms[j] && opal_iov_cache_form_equal(forms[i], forms[j])) {
                fprintf(stderr, "FAILED: '%s' and '%s' are equal\n", spellings_name(i),
                        spellings_name(j));
                ++failures;
            }
        }
    }
    for (i = 0; i < SPELLINGS_LAYOUTS; ++i) {
        opal_iov_cache_form_free(forms[i]);
    }
    opal_iov_cache_stats(cache, &stats);
    if (!opal_iov_cache_check(cache) || stats.entries - stats.shared != SPELLINGS_LAYOUTS) {
        fprintf(stderr, "FAILED: %" PRIu64 " entries share, of %" PRIu64 "\n", stats.shared,
                stats.entries);
        ++failures;
    }
    opal_iov_cache_destroy(cache);
    while (0 < cached_count) {
        MPI_Type_free(&kept[--cached_count]);
    }
    free(kept);
    if (singleton_leaks()) {
        ++failures;
    }
    printf("test_spellings: %d layouts, %zu spellings of each from seed %" PRIu64 ", %d failures\n",
           SPELLINGS_LAYOUTS, wanted, seed, failures);
    MPI_Finalize();
    return 0 == failures && 0 < wanted ? 0 : 1;
}
