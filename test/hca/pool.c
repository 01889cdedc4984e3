/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The pool of mkeys and the thread that fills it. The tests read their parameters from the
 * environment, where mpirun puts them, and derive the expected results. */

#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#define HELPER "umr-mkeys"
#define AREA   1024
#define MOST   64

/* ------------------------------------------------------------------------------------------- *
 * Who makes mkeys: these come before libmlx5's and libc's
 * ------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool closed;       /* the helper has to wait here before it makes one */
    bool waits;        /* and does */
    bool inside;       /* the helper is making one */
    size_t open_after; /* it may go on when others have made so many */
    long left;         /* that the device still gives; -1: any number */
    bool no_thread;    /* pthread_create fails */
    bool signals;      /* the helper could be disturbed by one */
    bool at_wait;      /* opened when this thread waits for something else: */
    pthread_t waiter;
    size_t by_helper;    /* calls */
    size_t by_others;    /* calls of other threads */
    size_t made, failed; /* what came of them */
    size_t destroyed;
} device = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .change = PTHREAD_COND_INITIALIZER,
    .left = -1,
};

static bool is_helper(void)
{
    char name[32] = "";

    (void) pthread_getname_np(pthread_self(), name, sizeof(name));
    return 0 == strcmp(HELPER, name);
}

/** Some signal could come to this thread. */
static bool may_be_disturbed(void)
{
    sigset_t blocked;

    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    return 1 != sigismember(&blocked, SIGINT) || 1 != sigismember(&blocked, SIGALRM)
           || 1 != sigismember(&blocked, SIGCHLD) || 1 != sigismember(&blocked, SIGUSR1);
}

struct mlx5dv_mkey *mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
    struct mlx5dv_mkey *(*real)(struct mlx5dv_mkey_init_attr *) =
        dlsym(RTLD_NEXT, "mlx5dv_create_mkey");
    struct mlx5dv_mkey *mkey = NULL;
    bool refuse;

    pthread_mutex_lock(&device.lock);
    if (is_helper()) {
        ++device.by_helper;
        device.inside = true;
        device.signals = device.signals || may_be_disturbed();
        device.waits = device.closed;
        pthread_cond_broadcast(&device.change);
        while (device.closed) {
            pthread_cond_wait(&device.change, &device.lock);
        }
        device.waits = false;
    } else {
        ++device.by_others;
        pthread_cond_broadcast(&device.change);
    }
    refuse = 0 == device.left;
    device.left -= 0 < device.left ? 1 : 0;
    pthread_mutex_unlock(&device.lock);
    if (!refuse) {
        mkey = real(attr);
    }
    pthread_mutex_lock(&device.lock);
    ++*(NULL == mkey ? &device.failed : &device.made);
    device.inside = device.inside && !is_helper();
    pthread_mutex_unlock(&device.lock);
    if (refuse) {
        errno = ENOSPC;
    }
    return mkey;
}

int mlx5dv_destroy_mkey(struct mlx5dv_mkey *mkey)
{
    int (*real)(struct mlx5dv_mkey *) = dlsym(RTLD_NEXT, "mlx5dv_destroy_mkey");

    pthread_mutex_lock(&device.lock);
    ++device.destroyed;
    pthread_mutex_unlock(&device.lock);
    return real(mkey);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");

    return device.no_thread ? EAGAIN : real(thread, attr, start, argument);
}

/** A thread that waits has done all that it does before. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *) = dlsym(RTLD_NEXT, "pthread_cond_wait");

    if (cond != &device.change && __atomic_load_n(&device.at_wait, __ATOMIC_ACQUIRE)
        && pthread_equal(device.waiter, pthread_self())) {
        pthread_mutex_lock(&device.lock);
        __atomic_store_n(&device.at_wait, false, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&device.change);
        pthread_mutex_unlock(&device.lock);
    }
    return real(cond, mutex);
}

static size_t device_count(const size_t *counter)
{
    size_t count;

    pthread_mutex_lock(&device.lock);
    count = *counter;
    pthread_mutex_unlock(&device.lock);
    return count;
}

static void device_close(void)
{
    pthread_mutex_lock(&device.lock);
    device.closed = true;
    pthread_mutex_unlock(&device.lock);
}

static void *open_later(void *unused)
{
    (void) unused;
    pthread_mutex_lock(&device.lock);
    while (device.by_others < device.open_after) {
        pthread_cond_wait(&device.change, &device.lock);
    }
    if (device.at_wait) {
        while (device.at_wait) {
            pthread_cond_wait(&device.change, &device.lock);
        }
    } else {
        pthread_mutex_unlock(&device.lock);
        usleep(100000);
        pthread_mutex_lock(&device.lock);
    }
    device.closed = false;
    pthread_cond_broadcast(&device.change);
    pthread_mutex_unlock(&device.lock);
    return NULL;
}

/** The helper waits at the device; it goes on in a moment, but not before others have made so many.
 */
static pthread_t device_open_later(size_t others)
{
    pthread_t thread;

    pthread_mutex_lock(&device.lock);
    device.open_after = others;
    while (!device.waits) {
        pthread_cond_wait(&device.change, &device.lock);
    }
    pthread_mutex_unlock(&device.lock);
    CHECK(0 == pthread_create(&thread, NULL, open_later, NULL), "no thread");
    return thread;
}

/** The threads of this process that are named as the helper is. */
static size_t helpers(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    size_t count = 0;

    CHECK(NULL != tasks, "no /proc");
    while (NULL != (task = readdir(tasks))) {
        char path[300], name[64] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (NULL != file) {
            count +=
                NULL != fgets(name, sizeof(name), file) && 0 == strcmp(HELPER "\n", name) ? 1 : 0;
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

/* ------------------------------------------------------------------------------------------- *
 * The pool as it should be
 * ------------------------------------------------------------------------------------------- */

static struct {
    size_t step, low, max;
    size_t first; /* made at start-up */
    size_t count; /* that should exist */
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    uint64_t by_helper, by_messages; /* counted before the test */
    opal_iov_cache_layout_t *layout;
    unsigned char *area;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keysets[MCA_BTL_UMR_ROLE_MAX][MOST];
} pool;

static size_t param(const char *name, size_t otherwise)
{
    char variable[64];
    const char *value;

    snprintf(variable, sizeof(variable), "OMPI_MCA_btl_umr_%s", name);
    value = getenv(variable);
    return NULL == value ? otherwise : strtoul(value, NULL, 0);
}

static size_t pool_now(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();

    return stats->mkeys_now - stats->mkeys_long_now;
}

static void pool_start(void)
{
    size_t percent = param("mkeys_low", 50);

    memset(&pool, 0, sizeof(pool));
    pool.first = pool.count = param("mkeys", 64);
    pool.step = param("mkeys_step", 32);
    pool.max = param("mkeys_max", 4096);
    pool.low = pool.first * percent / 100 / 2;
    pool.low = 0 < percent && 0 == pool.low ? 1 : pool.low;
    pool.by_helper = harness.hca->stats()->mkeys_by_helper;
    pool.by_messages = harness.hca->stats()->mkeys_by_messages;
    pool.layout = layout_vector(4, 32, 100);
    pool.area = calloc(1, AREA);
    CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_REMOTE, pool.area, pool.layout,
                                                        pool.layout->size, &pool.memory));
    CHECK(pool.count == pool_now(), "%zu mkeys at the start, not %zu", pool_now(), pool.count);
    WAIT_UNTIL(0 == helpers()); /* /proc shows a thread for a moment after it was joined */
    pthread_mutex_lock(&device.lock);
    device.by_helper = device.by_others = device.failed = 0;
    pthread_mutex_unlock(&device.lock);
}

static int pool_try(mca_btl_umr_role_t role, mca_btl_umr_keyset_t **keyset)
{
    struct done done = {0, 0};
    int rc = harness.hca->keyset_map(role, pool.area, pool.layout, pool.memory, 0, 0,
                                     pool.layout->size, 1, harness_done, &done, keyset);

    if (OPAL_SUCCESS == rc) {
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
    }
    return rc;
}

/** A role uses one more. */
static void pool_take(mca_btl_umr_role_t role)
{
    CHECK(MOST > pool.used[role], "the test's own array");
    CHECK_RC(OPAL_SUCCESS, pool_try(role, &pool.keysets[role][pool.used[role]]));
    ++pool.used[role];
}

static void pool_give_all(void)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (0 < pool.used[role]) {
            harness.hca->keyset_release(pool.keysets[role][--pool.used[role]]);
        }
    }
    harness_progress_for(0.02);
}

/** The next test finds a pool as at the start. */
static void pool_end(void)
{
    pool_give_all();
    harness.hca->memory_release(pool.memory);
    OBJ_RELEASE(pool.layout);
    free(pool.area);
    harness_disconnect();
    harness_connect();
}

/** What the helper has to do now: steps, until enough is free or no more may be. */
static void pool_expect(void)
{
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.count < pool.max && pool.count / 2 - pool.used[role] < pool.low) {
            pool.count += pool.max - pool.count < pool.step ? pool.max - pool.count : pool.step;
        }
    }
}

/** Check that it is done once, and by no other thread. */
static void pool_check(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();

    WAIT_UNTIL(pool.count <= pool_now());
    harness_progress_for(0.003);
    CHECK(pool.count == pool_now(), "%zu mkeys, not %zu (%zu and %zu in use)", pool_now(),
          pool.count, pool.used[0], pool.used[1]);
    CHECK(pool.count - pool.first == device_count(&device.by_helper), "%zu made by the helper",
          device_count(&device.by_helper));
    CHECK(pool.count - pool.first == stats->mkeys_by_helper - pool.by_helper,
          "%llu counted for the helper",
          (unsigned long long) (stats->mkeys_by_helper - pool.by_helper));
    CHECK(0 == device_count(&device.by_others) && pool.by_messages == stats->mkeys_by_messages,
          "%zu mkeys made by messages, %llu counted", device_count(&device.by_others),
          (unsigned long long) stats->mkeys_by_messages);
    CHECK((pool.count > pool.first ? 1 : 0) == helpers(), "%zu threads", helpers());
}

/** No role may have another one, and no thread tries to make it. */
static void pool_check_full(void)
{
    size_t calls = device_count(&device.by_helper) + device_count(&device.by_others);
    mca_btl_umr_keyset_t *none;

    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, pool_try(role, &none));
    }
    harness_progress_for(0.02);
    CHECK(calls == device_count(&device.by_helper) + device_count(&device.by_others),
          "asked for more than may be");
}

/* ------------------------------------------------------------------------------------------- *
 * The tests
 * ------------------------------------------------------------------------------------------- */

/** A load that grows up to the bound, and then one that grows no more. */
static void pool_growing(void)
{
    pool_start();
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.max / 2) {
            pool_take(role);
            pool_expect();
            pool_check();
        }
    }
    CHECK(pool.max == pool_now(), "%zu mkeys of %zu", pool_now(), pool.max);
    pool_check_full();
    CHECK(!device.signals, "the helper takes signals");

    pool_give_all();
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.max / 2) {
            pool_take(role);
        }
    }
    pool_check();
    pool_end();
}

/** The helper does not come to it: messages make what they need, and not one more than may be. */
static void pool_late(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    pthread_t opener;

    pool_start();
    device_close();
    while (pool.used[MCA_BTL_UMR_LOCAL] < pool.first / 2) {
        pool_take(MCA_BTL_UMR_LOCAL);
    }
    CHECK(0 == device_count(&device.by_others), "made without need");
    if (pool.first + pool.step < pool.max) {
        pool_take(MCA_BTL_UMR_LOCAL);
        CHECK(2 == device_count(&device.by_others), "%zu made for one more of either role",
              device_count(&device.by_others));
    }

    /* One step of the helper was requested. Without it there are only these. */
    opener = device_open_later(pool.first + pool.step < pool.max ? pool.max - pool.first - pool.step
                                                                 : 0);
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.max / 2) {
            pool_take(role);
            CHECK(pool.max >= pool_now(), "%zu mkeys of %zu", pool_now(), pool.max);
        }
    }
    pthread_join(opener, NULL);
    WAIT_UNTIL(pool.max == pool_now());
    pool_check_full();
    CHECK(pool.max == pool_now(), "%zu mkeys of %zu", pool_now(), pool.max);
    CHECK(pool.max - pool.first
              == device_count(&device.by_helper) + device_count(&device.by_others),
          "%zu and %zu made", device_count(&device.by_helper), device_count(&device.by_others));
    CHECK(device_count(&device.by_others) == stats->mkeys_by_messages - pool.by_messages
              && device_count(&device.by_helper) == stats->mkeys_by_helper - pool.by_helper,
          "%llu and %llu counted", (unsigned long long) (stats->mkeys_by_helper - pool.by_helper),
          (unsigned long long) (stats->mkeys_by_messages - pool.by_messages));
    pool_end();
}

/** The device gives two more and then none. (The script sees that it is said once.) */
static void pool_limit(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t evictions, errors = stats->errors;
    opal_iov_cache_layout_t *other = layout_vector(4, 16, 100);
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;

    pool_start();
    device.left = 2;
    pool.count = pool.max = pool.first + 2;
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.count / 2) {
            pool_take(role);
            if (pool.first / 2 - pool.used[role] < pool.low) {
                /* a message that finds none would also make a request to the device */
                WAIT_UNTIL(1 == device_count(&device.failed) && pool.count == pool_now());
            }
        }
    }
    harness_progress_for(0.02);
    pool_check_full();
    CHECK(pool.count == pool_now(), "%zu mkeys, not %zu", pool_now(), pool.count);
    CHECK(1 == device_count(&device.failed), "asked %zu times more", device_count(&device.failed));
    CHECK(errors == stats->errors, "%llu errors", (unsigned long long) (stats->errors - errors));

    /* As without a helper: cached keys are evicted. */
    evictions = stats->keyset_evictions;
    harness.hca->keyset_keep(pool.keysets[MCA_BTL_UMR_LOCAL][--pool.used[MCA_BTL_UMR_LOCAL]]);
    CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, pool.area, other,
                                                        other->size, &memory));
    CHECK_RC(OPAL_SUCCESS, harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, pool.area, other, memory, 0,
                                                   0, other->size, 1, NULL, NULL, &keyset));
    CHECK(evictions + 1 == stats->keyset_evictions, "%llu evictions",
          (unsigned long long) (stats->keyset_evictions - evictions));
    WAIT_UNTIL(keyset->ready);
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(other);
    pool_give_all();
    CHECK(1 == device_count(&device.failed), "asked %zu times more", device_count(&device.failed));
    device.left = -1;
    pool_end();
}

/** Messages that get no mkey, until the next request to the device. @return how many */
static unsigned pool_lack(mca_btl_umr_role_t role, int expected)
{
    size_t calls = device_count(&device.by_helper) + device_count(&device.by_others);
    mca_btl_umr_keyset_t *keyset = NULL;
    unsigned lacked = 0;
    int rc;

    do {
        rc = pool_try(role, &keyset);
        ++lacked;
        CHECK(100000 > lacked, "the device is never asked again");
    } while (calls == device_count(&device.by_helper) + device_count(&device.by_others));
    CHECK(expected == rc, "rc %d, not %d", rc, expected);
    if (OPAL_SUCCESS == rc) {
        harness.hca->keyset_release(keyset);
    }
    return lacked;
}

/** A device may grant later what it refused: requests are repeated, with growing delays. */
static void pool_again(void)
{
    unsigned first, second;

    pool_start();
    device.left = 0;
    pool.count = pool.first;
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.count / 2) {
            pool_take(role);
        }
    }
    WAIT_UNTIL(1 == device_count(&device.failed));
    harness_progress_for(0.02);

    first = pool_lack(MCA_BTL_UMR_LOCAL, OPAL_ERR_OUT_OF_RESOURCE);
    second = pool_lack(MCA_BTL_UMR_LOCAL, OPAL_ERR_OUT_OF_RESOURCE);
    CHECK(100 < first && 3 * first < 2 * second, "asked after %u messages, and then after %u",
          first, second);
    CHECK(pool.count == pool_now(), "%zu mkeys, not %zu", pool_now(), pool.count);
    device.left = -1;
    (void) pool_lack(MCA_BTL_UMR_LOCAL, OPAL_SUCCESS);
    CHECK(pool.count < pool_now(), "%zu mkeys, no more than before", pool_now());
    pool_end();
}

/** As many as need be for the helper to be making the first one of a step. */
static void pool_query(void)
{
    device_close();
    while (pool.count / 2 - pool.used[MCA_BTL_UMR_LOCAL] >= pool.low) {
        pool_take(MCA_BTL_UMR_LOCAL);
    }
}

/** The HCA is closed while the helper makes an mkey, and opened again. */
static void pool_closed(void)
{
    opal_iov_cache_layout_t *layout;
    unsigned char *area;
    pthread_t opener;

    pool_start();
    CHECK(1 < pool.step, "nothing would be left to do");
    pool_query();
    /* Only when fini waits for the helper: fini has then set it to create no more. */
    device.waiter = pthread_self();
    device.at_wait = true;
    opener = device_open_later(0);
    layout = pool.layout;
    area = pool.area;
    harness.hca->fini(); /* with keysets in use: they are gone */
    pthread_join(opener, NULL);
    CHECK(1 == device_count(&device.by_helper), "the helper made %zu more after its end",
          device_count(&device.by_helper) - 1);
    WAIT_UNTIL(0 == helpers());
    CHECK(0 == harness.hca->stats()->mkeys_now, "%llu mkeys left",
          (unsigned long long) harness.hca->stats()->mkeys_now);
    CHECK(device_count(&device.made) == device_count(&device.destroyed), "%zu made, %zu destroyed",
          device_count(&device.made), device_count(&device.destroyed));
    OBJ_RELEASE(layout);
    free(area);

    harness_connect();
    pool_start();
    pool_query();
    opener = device_open_later(0);
    pthread_join(opener, NULL);
    pool_expect();
    pool_check();
    pool_end();
}

/** What a child does. */
static void child(bool close_hca)
{
    alarm(100); /* instead of hanging */
    /* Errors of the HCA about objects that are not the child's are ignored. */
    if (NULL == freopen("/dev/null", "w", stderr)) {
        _exit(2);
    }
    if (device.inside) {
        _exit(4); /* some lock may stay locked */
    }
    if (close_hca) {
        harness.hca->fini();
        _exit(0 == helpers() ? 0 : 3);
    }
    exit(0);
}

/** Forks while the helper makes an mkey: parent and child can both go on. */
static void pool_forked(void)
{
    pthread_t opener;
    pid_t pids[2];

    pool_start();
    pool_query();
    opener = device_open_later(0);
    fflush(NULL);
    for (int i = 0; i < 2; ++i) {
        pids[i] = fork();
        CHECK(0 <= pids[i], "no fork");
        if (0 == pids[i]) {
            child(1 == i);
        }
    }
    for (int i = 0; i < 2; ++i) {
        pid_t pid = 0;
        int status = 0;

        WAIT_UNTIL(0 != (pid = waitpid(pids[i], &status, WNOHANG)));
        CHECK(pid == pids[i] && WIFEXITED(status) && 0 == WEXITSTATUS(status),
              "child %d: status 0x%x", i, status);
    }
    pthread_join(opener, NULL);
    pool_expect();
    pool_check();
    pool_take(MCA_BTL_UMR_REMOTE);
    pool_expect();
    pool_check();
    pool_end();
}

/** No helper wanted, or none to be had: whoever finds no mkey makes a step of them. */
static void no_helper(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();

    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        while (pool.used[role] < pool.max / 2) {
            if (pool.used[role] == pool.count / 2) {
                pool.count += pool.max - pool.count < pool.step ? pool.max - pool.count : pool.step;
            }
            pool_take(role);
            CHECK(pool.count == pool_now(), "%zu mkeys, not %zu", pool_now(), pool.count);
        }
    }
    pool_check_full();
    CHECK(pool.count - pool.first == device_count(&device.by_others)
              && pool.count - pool.first == stats->mkeys_by_messages - pool.by_messages,
          "%zu made, %llu counted", device_count(&device.by_others),
          (unsigned long long) stats->mkeys_by_messages);
    CHECK(0 == device_count(&device.by_helper) && pool.by_helper == stats->mkeys_by_helper
              && 0 == helpers(),
          "a helper");
    pool_end();
}

/** (Run with btl_umr_mkeys_low=0.) */
static void pool_off(void)
{
    pool_start();
    CHECK(0 == pool.low, "run this with btl_umr_mkeys_low=0");
    no_helper();
}

static void pool_no_thread(void)
{
    pool_start();
    CHECK(0 < pool.low, "run this with a helper");
    device.no_thread = true;
    no_helper();
    device.no_thread = false;
}

const struct test pool_tests[] = {
    {"pool_growing", pool_growing},
    {"pool_late", pool_late},
    {"pool_limit", pool_limit},
    {"pool_again", pool_again},
    {"pool_closed", pool_closed},
    {"pool_forked", pool_forked},
    {"pool_off", pool_off},
    {"pool_no_thread", pool_no_thread},
    {NULL, NULL},
};
