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
 * Requests: several at once over random layouts, some of which they share, tested in random order,
 * in steps of any size, and some of them cancelled on the way. After each test exactly as many
 * bytes are done as a step has, and no others have been touched; what is done is what the blocking
 * functions do. Datatypes, and our own references to layouts, go while the requests are active. The
 * linker counts allocations (--wrap): there must be none.
 *
 *     random_requests [count [seed]]      group i has seed + i; "random_requests 1 S" replays one
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache_request.h"
#include "test/common/typegen.h"

#if !defined(DEFAULT_COUNT)
#define DEFAULT_COUNT 4000
#endif
#define DEFAULT_SEED 20261121
#define MAX_FAILURES 10
#define MAX_LAYOUTS  3
#define MAX_REQUESTS 8

static int failures;
static uint64_t current_seed;
static typegen_rng_t dice;
static uint64_t allocations;

#define CHECK(CONDITION, ...)                                                                \
    do {                                                                                     \
        if (!(CONDITION)) {                                                                  \
            fprintf(stderr, "FAILED: random_requests 1 %" PRIu64 ": %s\n    ", current_seed, \
                    #CONDITION);                                                             \
            fprintf(stderr, __VA_ARGS__);                                                    \
            fprintf(stderr, "\n");                                                           \
            ++failures;                                                                      \
            return false;                                                                    \
        }                                                                                    \
    } while (0)

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    ++allocations;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    ++allocations;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    ++allocations;
    return __real_realloc(memory, bytes);
}

typedef enum {
    PACK,
    UNPACK,
    UNPACK_OP
} kind_t;

/* A request, and what it must have done. */
typedef struct {
    opal_iov_cache_request_t request;
    int which; /* layout */
    kind_t kind;
    uint64_t start;
    uint64_t length;
    uint64_t step;    /* as given */
    uint64_t element; /* bytes of one; 1 if there is no operation */
    uint64_t done;
    bool over;
    unsigned char *memory;
    unsigned char *stream;   /* length bytes and one more */
    unsigned char *expected; /* memory or stream, as it must be for what is done */
} job_t;

typedef struct {
    opal_iov_cache_layout_t *layouts[MAX_LAYOUTS];
    opal_iov_cache_form_t *forms[MAX_LAYOUTS]; /* not the layouts' own, which go with them */
    int layout_count;
    job_t jobs[MAX_REQUESTS];
    int job_count;
    bool released; /* our own references are gone */
} group_t;

static size_t span(const group_t *group, const job_t *job)
{
    return (size_t) (group->forms[job->which]->ub - group->forms[job->which]->lb);
}

static void *address(const group_t *group, const job_t *job, unsigned char *memory)
{
    return (void *) ((uintptr_t) memory - (uintptr_t) group->forms[job->which]->lb);
}

static void draw_layouts(group_t *group)
{
    int i;

    group->layout_count = 1 + (int) typegen_below(&dice, MAX_LAYOUTS);
    for (i = 0; i < group->layout_count; ++i) {
        typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
        typegen_side_t side;

        options.empty = true;
        options.max_elements = 300;
        options.max_span = 64 * 1024;
        typegen_random(&dice, &options, &side);
        if (OPAL_SUCCESS
                != opal_iov_cache_layout_create(opal_type(side.type), (size_t) side.count,
                                                &group->layouts[i])
            || OPAL_SUCCESS
                   != opal_iov_cache_form_create(opal_type(side.type), (size_t) side.count,
                                                 &group->forms[i])) {
            fprintf(stderr, "no layout\n");
            abort();
        }
        typegen_side_free(&side);
    }
}

static void draw_job(const group_t *group, job_t *job)
{
    const opal_iov_cache_form_t *form;
    uint64_t n, i;

    job->over = true; /* not yet started */
    job->which = (int) typegen_below(&dice, (uint64_t) group->layout_count);
    job->kind = (kind_t) typegen_below(&dice, 3);
    job->element = UNPACK_OP == job->kind ? sizeof(int32_t) : 1;
    form = group->forms[job->which];
    n = form->size / job->element;
    job->start = typegen_below(&dice, n + 1);
    job->length = typegen_below(&dice, n - job->start + 1) * job->element;
    job->start *= job->element;
    job->step = typegen_below(&dice, typegen_once_in(&dice, 4) ? 3 : 200);
    job->memory = malloc(span(group, job) + 1);
    job->stream = malloc(job->length + 1);
    for (i = 0; i < span(group, job); ++i) {
        job->memory[i] = typegen_pattern(current_seed, (int64_t) i);
    }
    for (i = 0; i <= job->length; ++i) {
        job->stream[i] = typegen_pattern(current_seed + 1, (int64_t) i);
    }
    if (PACK == job->kind) {
        job->expected = malloc(job->length + 1);
        memcpy(job->expected, job->stream, job->length + 1);
    } else {
        job->expected = malloc(span(group, job) + 1);
        memcpy(job->expected, job->memory, span(group, job));
    }
}

static int start_job(group_t *group, job_t *job)
{
    opal_iov_cache_layout_t *layout = group->layouts[job->which];
    void *buffer = address(group, job, job->memory);

    switch (job->kind) {
    case PACK:
        return opal_iov_cache_pack_start(&job->request, layout, buffer, job->start, job->length,
                                         job->stream, job->step);
    case UNPACK:
        return opal_iov_cache_unpack_start(&job->request, layout, buffer, job->start, job->length,
                                           job->stream, job->step);
    default:
        return opal_iov_cache_unpack_op_start(&job->request, layout, buffer, job->start,
                                              job->length, job->stream, OPAL_IOV_CACHE_SUM,
                                              OPAL_IOV_CACHE_INT32, job->step);
    }
}

/* What a test adds to job->done. */
static uint64_t next_step(const job_t *job)
{
    uint64_t step = 0 == job->step ? OPAL_IOV_CACHE_STEP : job->step;

    step = step < job->element ? job->element : step - step % job->element;
    return step < job->length - job->done ? step : job->length - job->done;
}

/* Do with job->expected what the request has to do until it has done @p done bytes. */
static void expect(const group_t *group, job_t *job, uint64_t done)
{
    const opal_iov_cache_form_t *form = group->forms[job->which];
    uint64_t from = job->start + job->done, length = done - job->done;
    const unsigned char *stream = job->stream + job->done;
    void *buffer = address(group, job, PACK == job->kind ? job->memory : job->expected);

    if (PACK == job->kind) {
        opal_iov_cache_form_pack(form, buffer, from, length, job->expected + job->done);
    } else if (UNPACK == job->kind) {
        opal_iov_cache_form_unpack(form, buffer, from, length, stream);
    } else {
        opal_iov_cache_form_unpack_op(form, buffer, from, length, stream, OPAL_IOV_CACHE_SUM,
                                      OPAL_IOV_CACHE_INT32);
    }
    job->done = done;
}

static bool check_job(const group_t *group, const job_t *job)
{
    const unsigned char *got = PACK == job->kind ? job->stream : job->memory;
    size_t bytes = PACK == job->kind ? job->length + 1 : span(group, job);

    CHECK(job->done == job->request.done, "%" PRIu64 " bytes done, not %" PRIu64, job->request.done,
          job->done);
    CHECK(job->over == (NULL == job->request.layout), "over: %d", job->over);
    CHECK(0 == memcmp(got, job->expected, bytes),
          "kind %d, [%" PRIu64 ", + %" PRIu64 "), step %" PRIu64 ", done %" PRIu64, job->kind,
          job->start, job->length, job->step, job->done);
    return true;
}

/* Each layout has one reference a request that is active, and ours. */
static bool check_references(const group_t *group)
{
    int counts[MAX_LAYOUTS] = {0}, i;

    for (i = 0; i < group->job_count; ++i) {
        counts[group->jobs[i].which] += group->jobs[i].over ? 0 : 1;
    }
    for (i = 0; !group->released && i < group->layout_count; ++i) {
        opal_object_t *object = (opal_object_t *) group->layouts[i];

        CHECK(1 + counts[i] == object->obj_reference_count, "layout %d has %d references, not %d",
              i, object->obj_reference_count, 1 + counts[i]);
    }
    return true;
}

/* One thing with one request that is not over. */
static bool step_job(group_t *group, job_t *job)
{
    uint64_t before = allocations, chance = typegen_below(&dice, 40);
    bool said;

    if (0 == chance) {
        opal_iov_cache_request_cancel(&job->request);
        job->over = true;
    } else if (1 == chance) {
        opal_iov_cache_request_wait(&job->request);
        expect(group, job, job->length);
        job->over = true;
    } else {
        expect(group, job, job->done + next_step(job));
        said = opal_iov_cache_request_test(&job->request);
        job->over = job->done == job->length;
        CHECK(said == job->over, "the test says %d", said);
    }
    CHECK(before == allocations, "a test allocates");
    if (job->over) {
        opal_iov_cache_request_cancel(&job->request);
        CHECK(opal_iov_cache_request_test(&job->request), "over, and then not");
    }
    return check_job(group, job) && check_references(group);
}

/* What a start must refuse. */
static bool check_refused(const group_t *group)
{
    opal_iov_cache_layout_t *layout = group->layouts[0];
    opal_iov_cache_request_t request;
    uint64_t size = layout->size;
    char byte = 'x', other = 'y';

#define REFUSED(CODE, CALL)                                                     \
    memset(&request, 0xee, sizeof(request));                                    \
    CHECK((CODE) == (CALL), "not refused");                                     \
    CHECK(opal_iov_cache_request_test(&request) && 'x' == byte && 'y' == other, \
          "refused, and active");                                               \
    opal_iov_cache_request_wait(&request);                                      \
    opal_iov_cache_request_cancel(&request)

    REFUSED(OPAL_ERR_BAD_PARAM,
            opal_iov_cache_pack_start(&request, layout, &byte, 0, size + 1, &other, 0));
    REFUSED(OPAL_ERR_BAD_PARAM,
            opal_iov_cache_unpack_start(&request, layout, &byte, size + 1, 0, &other, 0));
    REFUSED(OPAL_ERR_BAD_PARAM,
            opal_iov_cache_unpack_start(&request, layout, &byte, 1, UINT64_MAX, &other, 0));
    REFUSED(OPAL_ERR_BAD_PARAM,
            opal_iov_cache_unpack_op_start(&request, layout, &byte, 0, 2, &other,
                                           OPAL_IOV_CACHE_SUM, OPAL_IOV_CACHE_INT32, 0));
    REFUSED(OPAL_ERR_BAD_PARAM,
            opal_iov_cache_unpack_op_start(&request, layout, &byte, 0, size - size % 4 + 4, &other,
                                           OPAL_IOV_CACHE_SUM, OPAL_IOV_CACHE_INT32, 0));
    REFUSED(OPAL_ERR_NOT_SUPPORTED,
            opal_iov_cache_unpack_op_start(&request, layout, &byte, 0, 0, &other,
                                           OPAL_IOV_CACHE_BAND, OPAL_IOV_CACHE_FLOAT, 0));
    REFUSED(OPAL_ERR_NOT_SUPPORTED,
            opal_iov_cache_unpack_op_start(&request, layout, &byte, 0, 0, &other,
                                           OPAL_IOV_CACHE_SUM, OPAL_IOV_CACHE_ELEMENT_COUNT, 0));
    return true;
}

static bool run_group(group_t *group, uint64_t *steps)
{
    int active = group->job_count, i;
    uint64_t before;

    if (!check_refused(group) || !check_references(group)) {
        return false;
    }
    before = allocations;
    for (i = 0; i < group->job_count; ++i) {
        int rc = start_job(group, &group->jobs[i]);

        CHECK(OPAL_SUCCESS == rc, "start gave %d", rc);
        group->jobs[i].over = false;
    }
    CHECK(before == allocations, "a start allocates");
    for (i = 0; i < group->job_count; ++i) {
        if (!check_job(group, &group->jobs[i])) { /* nothing is moved by a start */
            return false;
        }
    }
    if (!check_references(group)) {
        return false;
    }
    if (typegen_once_in(&dice, 2)) {
        group->released = true;
        for (i = 0; i < group->layout_count; ++i) {
            OBJ_RELEASE(group->layouts[i]);
        }
    }
    while (0 < active) {
        job_t *job = &group->jobs[typegen_below(&dice, (uint64_t) group->job_count)];

        if (job->over) {
            continue;
        }
        if (!step_job(group, job)) {
            return false;
        }
        active -= job->over ? 1 : 0;
        ++*steps;
    }
    return true;
}

static bool check_group(uint64_t seed, uint64_t *steps)
{
    group_t group = {0};
    bool good;
    int i;

    current_seed = seed;
    typegen_seed(&dice, seed);
    draw_layouts(&group);
    group.job_count = 1 + (int) typegen_below(&dice, MAX_REQUESTS);
    for (i = 0; i < group.job_count; ++i) {
        draw_job(&group, &group.jobs[i]);
    }
    good = run_group(&group, steps);
    for (i = 0; i < group.job_count; ++i) {
        free(group.jobs[i].memory);
        free(group.jobs[i].stream);
        free(group.jobs[i].expected);
    }
    for (i = 0; i < group.layout_count; ++i) {
        opal_iov_cache_form_free(group.forms[i]);
        if (!group.released) {
            OBJ_RELEASE(group.layouts[i]);
        }
    }
    return good;
}

int main(int argc, char **argv)
{
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 0) : DEFAULT_COUNT;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED, steps = 0, i;

    singleton_init(MPI_THREAD_SINGLE);
    printf("random_requests: %" PRIu64 " groups from seed %" PRIu64 "\n", count, seed);
    for (i = 0; i < count && failures < MAX_FAILURES; ++i) {
        check_group(seed + i, &steps);
    }
    if (0 == allocations) {
        fprintf(stderr, "FAILED: allocations are not counted\n");
        ++failures;
    }
    if (singleton_leaks()) {
        ++failures;
    }
    printf("random_requests: %" PRIu64 " groups, %" PRIu64 " steps, %d failures\n", i, steps,
           failures);
    MPI_Finalize();
    return 0 == failures && 0 < steps ? 0 : 1;
}
