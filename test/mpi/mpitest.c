/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "mpitest.h"

#include "pvars.h"

#include <dirent.h>
#include <execinfo.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

mpitest_t mpitest = {.name = "?", .mode = ""};

/* Performance variables that exist, if UMRDDT_TEST_EXPECT is set. */
static int counters;

/* Seconds; see mpitest_init and mpitest_alive. */
#define DEADLINE 240
static unsigned deadline_seconds;

/* Text of the deadline message, written beforehand: the handler must not call printf. */
static char deadline_text[256];

/* File of the stacks of threads; UMRDDT_TEST_STACKS, and the rank. */
static char stacks_path[256];
static int stacks = STDERR_FILENO;
static int stack_written;

static void put_to(int fd, const char *text, size_t length)
{
    while (0 < length) {
        ssize_t n = write(fd, text, length);

        if (0 >= n) {
            return;
        }
        text += n;
        length -= (size_t) n;
    }
}

static void put(const char *text, size_t length)
{
    put_to(STDERR_FILENO, text, length);
}

static void put_number(long number)
{
    char digits[24];
    size_t i = sizeof(digits);

    do {
        digits[--i] = (char) ('0' + number % 10);
        number /= 10;
    } while (0 != number);
    put(digits + i, sizeof(digits) - i);
}

/* Write the stack of this thread. backtrace() was called before, so it needs no memory here. */
static void write_stack(int signal_number)
{
    char name[16 + 1] = "";
    void *frames[64];
    const int n = backtrace(frames, 64);

    (void) signal_number;
    (void) prctl(PR_GET_NAME, name);
    put_to(stacks, "thread ", 7);
    put_to(stacks, name, strlen(name));
    put_to(stacks, "\n", 1);
    backtrace_symbols_fd(frames, n, stacks);
    __atomic_store_n(&stack_written, 1, __ATOMIC_RELEASE);
}

/* All threads write their stacks, in turn. One that blocks the signal is left out. */
static void write_stacks(void)
{
    struct sigaction action = {.sa_handler = write_stack, .sa_flags = SA_RESTART};
    const struct timespec moment = {.tv_nsec = 1000000};
    _Alignas(struct dirent64) char entries[4096];
    const int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    long length, at;

    if ('\0' != stacks_path[0]) {
        stacks = open(stacks_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    write_stack(0);
    (void) sigaction(SIGBUS, &action, NULL); /* threads of the software driver block others */
    while (0 < (length = syscall(SYS_getdents64, dir, entries, sizeof(entries)))) {
        for (at = 0; at < length; at += ((struct dirent64 *) (void *) (entries + at))->d_reclen) {
            const long thread = atol(((struct dirent64 *) (void *) (entries + at))->d_name);
            int i;

            if (0 == thread || syscall(SYS_gettid) == thread) {
                continue;
            }
            __atomic_store_n(&stack_written, 0, __ATOMIC_RELEASE);
            (void) syscall(SYS_tgkill, getpid(), thread, SIGBUS);
            for (i = 0; i < 200 && 0 == __atomic_load_n(&stack_written, __ATOMIC_ACQUIRE); ++i) {
                (void) nanosleep(&moment, NULL);
            }
        }
    }
}

/* At the deadline: print the position of the program, by step and by stack, and exit. */
static void on_alarm(int signal_number)
{
    void *frames[64];
    int n;

    (void) signal_number;
    put(deadline_text, strlen(deadline_text));
    put_number(mpitest.step);
    put("\n", 1);
    n = backtrace(frames, 64);
    backtrace_symbols_fd(frames, n, STDERR_FILENO);
    write_stacks();
    if (NULL != mpitest.explain) {
        mpitest.explain(true);
    }
    /* The first rank that ends aborts the others. Give them time for their output. */
    sleep(2);
    _exit(124);
}

static long env_number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return NULL == text || '\0' == *text ? otherwise : strtol(text, NULL, 0);
}

/* Applies only to ranks of a job. */
static void set_deadline(unsigned seconds)
{
    alarm(0);
    deadline_seconds = seconds;
    snprintf(deadline_text, sizeof(deadline_text),
             "%s: FAILED: rank %d not done after %u s, --seed %llu --ops %ld, step ", mpitest.name,
             mpitest.rank, seconds, (unsigned long long) mpitest.seed, mpitest.ops);
    alarm(seconds);
}

static void usage(const char *name, const char *what)
{
    fprintf(stderr, "%s: %s; options: --seed N (0: from the clock) --ops N --mode WORD --verbose\n",
            name, what);
    exit(2);
}

/* Without --seed: the same seed for the same test each time, and another one for each test. Rare
 * draws are tested on purpose (--seed 0 uses the clock), not in unrelated changes. */
static uint64_t usual_seed(void)
{
    const char *host = getenv("UMRDDT_TEST_HOST");
    const char *words[3] = {mpitest.name, mpitest.mode, NULL != host ? host : ""};
    uint64_t seed = (uint64_t) mpitest.size;
    int i;

    for (i = 0; i < 3; ++i) {
        const char *c;

        for (c = words[i]; '\0' != *c; ++c) {
            seed = mpitest_mix(seed, (uint64_t) (unsigned char) *c, (uint64_t) i);
        }
    }
    return 1 + seed % 1000000000u;
}

static void read_options(int argc, char **argv, bool *have_seed)
{
    int i;

    for (i = 1; i < argc; ++i) {
        char *end = NULL;

        if (0 == strcmp(argv[i], "--verbose")) {
            mpitest.verbose = true;
        } else if (i + 1 < argc && 0 == strcmp(argv[i], "--seed")) {
            mpitest.seed = strtoull(argv[++i], &end, 0);
            *have_seed = true;
        } else if (i + 1 < argc && 0 == strcmp(argv[i], "--ops")) {
            mpitest.ops = strtol(argv[++i], &end, 0);
        } else if (i + 1 < argc && 0 == strcmp(argv[i], "--mode")) {
            mpitest.mode = argv[++i];
        } else {
            usage(mpitest.name, argv[i]);
        }
        if (NULL != end && ('\0' != *end || end == argv[i])) {
            usage(mpitest.name, argv[i]);
        }
    }
}

/* UMRDDT_TEST_MEMORY: the kinds of memory that buffers are drawn from. */
static gpu_kind_t memory_kinds[GPU_KINDS] = {GPU_HOST};
static int memory_kind_count = 1;

static void take_memory(void)
{
    const char *list = getenv("UMRDDT_TEST_MEMORY");

    if (NULL == list || '\0' == *list || 0 == strcmp(list, "host")) {
        return;
    }
    gpu_begin_all();
    memory_kind_count = gpu_kinds_of(list, memory_kinds);
    if (0 == memory_kind_count) {
        fprintf(stderr, "%s: UMRDDT_TEST_MEMORY: no such memory in '%s'\n", mpitest.name, list);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

gpu_kind_t mpitest_memory(void)
{
    static uint64_t drawn;
    uint64_t turn = __atomic_fetch_add(&drawn, 1, __ATOMIC_RELAXED);

    return memory_kinds[mpitest_mix(mpitest.seed, (uint64_t) mpitest.rank, turn)
                        % (uint64_t) memory_kind_count];
}

int mpitest_memory_kinds(gpu_kind_t *kinds)
{
    memcpy(kinds, memory_kinds, sizeof(*kinds) * (size_t) memory_kind_count);
    return memory_kind_count;
}

int mpitest_rank_before_init(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    if (NULL == text) {
        text = getenv("PMIX_RANK");
    }
    return NULL == text ? 0 : atoi(text);
}

void mpitest_init(int *argc, char ***argv, const char *name, long ops, int threads)
{
    long longer = 0 != env_number("UMRDDT_TEST_LONG", 0) ? 8 : 1;
    bool have_seed = false;
    int provided = MPI_THREAD_SINGLE;
    void *frames[2];

    mpitest.name = name;
    mpitest.ops = ops * longer;
    read_options(*argc, *argv, &have_seed);
    deadline_seconds = (unsigned) env_number(
        "UMRDDT_TEST_DEADLINE", DEADLINE * longer * env_number("UMRDDT_TEST_LIMIT_SCALE", 1));

    /* btl/smcuda of Open MPI is used only if MPI_Init finds a current context. */
    if (0 != env_number("UMRDDT_TEST_EARLY", 0)) {
        (void) gpu_begin(mpitest_rank_before_init());
    }

    /* The deadline also covers MPI_Init and MPI_Finalize. */
    snprintf(deadline_text, sizeof(deadline_text),
             "%s: FAILED: not done after %u s, process %ld, step ", name, deadline_seconds,
             (long) getpid());
    backtrace(frames, 2);
    if (NULL != getenv("UMRDDT_TEST_STACKS")) {
        snprintf(stacks_path, sizeof(stacks_path), "%s.%d", getenv("UMRDDT_TEST_STACKS"),
                 mpitest_rank_before_init());
    }
    signal(SIGALRM, on_alarm);
    alarm(deadline_seconds);

    if (MPI_SUCCESS != MPI_Init_thread(argc, argv, threads, &provided)) {
        fprintf(stderr, "%s: MPI_Init_thread failed\n", name);
        exit(1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest.size);
    if (!have_seed) {
        mpitest.seed = usual_seed();
    } else if (0 == mpitest.seed) {
        mpitest.seed = ((uint64_t) time(NULL) * 1000003u ^ (uint64_t) getpid()) % 1000000000u;
    }
    MPI_Bcast(&mpitest.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    set_deadline(deadline_seconds);
    if (0 == mpitest.rank) {
        printf("%s: %d ranks, --seed %llu --ops %ld%s%s\n", name, mpitest.size,
               (unsigned long long) mpitest.seed, mpitest.ops,
               '\0' == *mpitest.mode ? "" : " --mode ", mpitest.mode);
        fflush(stdout);
    }
    if (NULL != getenv("UMRDDT_TEST_EXPECT") && '\0' != *getenv("UMRDDT_TEST_EXPECT")) {
        counters = pvars_open();
    }
    if (provided < threads) {
        mpitest_skip("this Open MPI does not provide the thread level");
    }
    take_memory();
}

/*
 * UMRDDT_TEST_EXPECT: "taken": umrddt must have handled messages in this run, otherwise the run
 * tested only the base PML; "none": it must have handled none. "gpu": some messages must have been
 * in GPU memory, and carried by umrddt with any scheme; "pack": all handled messages were packed,
 * in chunks; "packed": some were; "device": some were, and the base PML carried chunks in GPU
 * memory of both ends; "HCA": some messages used the HCA, and GPU memory was registered with it.
 */
static void check_expectation(void)
{
    const char *expect = getenv("UMRDDT_TEST_EXPECT");
    pvars_t mine, all;

    if (NULL == expect || '\0' == *expect) {
        return;
    }
    pvars_read(&mine);
    pvars_close();
    pvars_sum(&mine, &all);
    if (0 == mpitest.rank && 0 < counters) {
        pvars_print("counters, all ranks", &all);
    }
    if (0 == strcmp(expect, "taken") || 0 == strcmp(expect, "clean")) {
        CHECK(0 < all.value[PVARS_HANDLED_SENDS]);
        CHECK(0 < all.value[PVARS_WRITES_POSTED] + all.value[PVARS_RECVS_IPC]);
        if (0 == strcmp(expect, "clean")) {
            CHECK_INT(all.value[PVARS_FALLBACK_SENDS], 0);
            CHECK_INT(all.value[PVARS_FALLBACK_RECVS], 0);
            CHECK_INT(all.value[PVARS_HANDLED_RECVS], all.value[PVARS_HANDLED_SENDS]);
            CHECK_INT(all.value[PVARS_WRITE_BYTES] + all.value[PVARS_IPC_BYTES],
                      all.value[PVARS_HANDLED_BYTES]);
        }
    } else if (0 == strcmp(expect, "none")) {
        CHECK_INT(all.value[PVARS_HANDLED_SENDS], 0);
    } else if (0 == strcmp(expect, "gpu")) {
        CHECK(0 < all.value[PVARS_STAGED_SENDS] + all.value[PVARS_STAGED_RECVS]
                      + all.value[PVARS_HANDLED_SENDS]);
    } else if (0 == strcmp(expect, "hca")) {
        /* counts= in the table checks for GPU memory */
        CHECK(0 < all.value[PVARS_SENDS_UMR] + all.value[PVARS_SENDS_DIRECT]);
        CHECK(0 < all.value[PVARS_GPU_REG_MISSES]);
    } else if (0 == strcmp(expect, "pack") || 0 == strcmp(expect, "packed")) {
        uint64_t packed = all.value[PVARS_SENDS_PACK_GDR] + all.value[PVARS_SENDS_PACK_STAGED]
                          + all.value[PVARS_SENDS_PACK_HOST];

        CHECK(0 < packed);
        if (0 == strcmp(expect, "pack")) {
            CHECK_INT(all.value[PVARS_FALLBACK_SENDS], 0);
            CHECK_INT(all.value[PVARS_FALLBACK_RECVS], 0);
            CHECK_INT(all.value[PVARS_RECVS_PACK], all.value[PVARS_HANDLED_SENDS]);
            CHECK_INT(packed, all.value[PVARS_HANDLED_SENDS]);
        }
    } else if (0 == strcmp(expect, "device")) {
        CHECK(0 < all.value[PVARS_SENDS_PACK_GDR] && 0 < all.value[PVARS_RECVS_PACK]);
        CHECK(0 < all.value[PVARS_PACK_DEVICE]);
        CHECK_INT(all.value[PVARS_PACK_BY_HCA], 0);
        CHECK_INT(all.value[PVARS_GPU_REG_MISSES], 0);
    } else {
        CHECK(0 == strcmp(expect, "any"));
    }
}

int mpitest_finish(void)
{
    long checks = 0;

    mpitest.step = -2;
    check_expectation();
    MPI_Reduce(&mpitest.checks, &checks, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == mpitest.rank) {
        printf("%s: ok, %ld checks\n", mpitest.name, checks);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

void mpitest_alive(void)
{
    alarm(deadline_seconds);
}

void mpitest_stuck(unsigned seconds)
{
    set_deadline(seconds);
}

void mpitest_skip(const char *reason)
{
    if (0 == mpitest.rank) {
        printf("%s: SKIPPED: %s\n", mpitest.name, reason);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    exit(MPITEST_SKIP);
}

void mpitest_fail(const char *file, int line, const char *format, ...)
{
    const char *slash = strrchr(file, '/');
    void *frames[32];
    va_list arguments;
    char text[1024], all[1400];

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    /* In one write, because mpirun prints at the same time; with glibc 2.37 and later, fprintf to
     * stderr makes several system calls. */
    (void) snprintf(all, sizeof(all),
                    "%s: FAILED: rank %d of %d, %s:%d: %s [--seed %llu --ops %ld, step %ld]\n",
                    mpitest.name, mpitest.rank, mpitest.size, NULL == slash ? file : slash + 1,
                    line, text, (unsigned long long) mpitest.seed, mpitest.ops, mpitest.step);
    fflush(stderr);
    if (0 > write(STDERR_FILENO, all, strlen(all))) {
        perror("write");
    }
    if (NULL != mpitest.explain) {
        mpitest.explain(false);
    }
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void mpitest_run(const mpitest_part_t *parts)
{
    const mpitest_part_t *part;
    long op, step = 0;

    for (op = 0; op < mpitest.ops; ++op) {
        for (part = parts; NULL != part->name; ++part, ++step) {
            uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) step, 11);

            mpitest.step = step;
            if ('\0' != *mpitest.mode && !mpitest_has(part->name)) {
                continue;
            }
            if (mpitest.verbose && 0 == mpitest.rank) {
                printf("step %ld: %s\n", mpitest.step, part->name);
                fflush(stdout);
            }
            part->run(&state);
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
}

int mpitest_right(void)
{
    return (mpitest.rank + 1) % mpitest.size;
}

int mpitest_left(void)
{
    return (mpitest.rank + mpitest.size - 1) % mpitest.size;
}

bool mpitest_has(const char *word)
{
    return NULL != strstr(mpitest.mode, word);
}

bool mpitest_base_is(const char *name)
{
    const char *host = getenv("UMRDDT_TEST_HOST");

    return NULL != host && 0 == strcmp(host, name);
}

void mpitest_status_at(const char *file, int line, const MPI_Status *status, int source, int tag,
                       int bytes)
{
    int count = -1, cancelled = -1;

    MPI_OK(MPI_Get_count(status, MPI_BYTE, &count));
    MPI_OK(MPI_Test_cancelled(status, &cancelled));
    if (status->MPI_SOURCE != source || status->MPI_TAG != tag || count != bytes
        || 0 != cancelled) {
        mpitest_fail(file, line,
                     "a message of %d bytes from %d, tag %d%s; not of %d bytes from %d, tag %d",
                     count, status->MPI_SOURCE, status->MPI_TAG, cancelled ? ", cancelled" : "",
                     bytes, source, tag);
    }
    ++mpitest.checks;
}

const char *mpitest_error_string(int code)
{
    static char text[MPI_MAX_ERROR_STRING + 32];
    int length = 0;

    if (MPI_SUCCESS != MPI_Error_string(code, text, &length)) {
        snprintf(text, sizeof(text), "error %d", code);
    }
    return text;
}

int mpitest_error_class(int code)
{
    int class = -1;

    MPI_Error_class(code, &class);
    return class;
}

uint64_t mpitest_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

long mpitest_between(uint64_t *state, long low, long high)
{
    return low + (long) (mpitest_random(state) % (uint64_t) (high - low + 1));
}

uint64_t mpitest_mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t state = a;

    state = mpitest_random(&state) ^ b;
    state = mpitest_random(&state) ^ c;
    return mpitest_random(&state);
}

void mpitest_sleep(long microseconds)
{
    struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};

    while (0 != nanosleep(&left, &left) && EINTR == errno) {
        continue;
    }
}

void mpitest_shuffle(uint64_t *state, int *indices, int n)
{
    int i;

    for (i = n - 1; i > 0; --i) {
        int j = (int) mpitest_between(state, 0, i), swap = indices[i];

        indices[i] = indices[j];
        indices[j] = swap;
    }
}
