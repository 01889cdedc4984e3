/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Only the thread that runs progress may call functions with that contract. This program is built
 * as with --enable-debug: a call from another thread, and from the same one after progress, ends
 * the process, and a call from within progress does not.
 *
 * Progress retries polled waits in order, each once a pass, whatever the retries end and begin, and
 * those with a flag when it has changed.
 */

#include "ompi_config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"

#include "../common/check.h"

unsigned opal_umrddt_gpu_pending_copies;

/* That of Open MPI 5.0 crashes in a program that has not initialized Open MPI. */
void __wrap_opal_output(int id, const char *format, ...);
void __wrap_opal_output(int id, const char *format, ...)
{
    (void) id;
    (void) format;
}

static void call(void)
{
    mca_pml_umrddt_wait_t wait;
    opal_list_t list;

    OBJ_CONSTRUCT(&wait, mca_pml_umrddt_wait_t);
    OBJ_CONSTRUCT(&list, opal_list_t);
    mca_pml_umrddt_wait(&list, &wait, NULL, NULL);
    mca_pml_umrddt_wait_cancel(&wait);
    OBJ_DESTRUCT(&list);
    OBJ_DESTRUCT(&wait);
}

static void *call_from_thread(void *argument)
{
    (void) argument;
    call();
    return NULL;
}

static void by_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, call_from_thread, NULL);
    pthread_join(thread, NULL);
}

static void called_by_progress(void *owner)
{
    void (*what)(void) = *(void (**)(void)) owner;

    what();
}

/* Progress runs and calls it. */
static void in_progress(void (*what)(void))
{
    mca_pml_umrddt_event_t event = {.queued = false};

    mca_pml_umrddt_event(&event, called_by_progress, &what);
    CHECK(1 == mca_pml_umrddt_progress());
}

/* The signal that ends a process which does this; 0: none does. */
static int ends(void (*caller)(void (*)(void)), void (*what)(void))
{
    int status;
    pid_t child = fork();

    CHECK(0 <= child);
    if (0 == child) {
        caller(what);
        _exit(0);
    }
    CHECK(child == waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && 0 == WEXITSTATUS(status)));
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void directly(void (*what)(void))
{
    what();
}

static void after_progress(void (*what)(void))
{
    in_progress(call);
    what();
}

/* ---------------------------------------------------------------------------------------------
 * Polled waits
 * ------------------------------------------------------------------------------------------- */

#define WAITS 6

static struct polled {
    mca_pml_umrddt_wait_t wait;
    bool stays; /* by mca_pml_umrddt_watch */
    bool over;
    int ends;   /* other wait that its retry ends; -1: none */
    int begins; /* other wait that its retry begins; -1: none */
} polled[WAITS];
static char retried[64];

static bool retry(void *owner);

static void begin(int i)
{
    if (polled[i].stays) {
        mca_pml_umrddt_watch(&polled[i].wait, NULL, 0, 0, retry, &polled[i]);
    } else {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &polled[i].wait, retry, &polled[i]);
    }
}

static bool retry(void *owner)
{
    struct polled *own = owner;

    retried[strlen(retried)] = (char) ('0' + (own - polled));
    CHECK(own->stays == (NULL != own->wait.list));
    if (0 <= own->ends) {
        mca_pml_umrddt_wait_cancel(&polled[own->ends].wait);
        own->ends = -1;
    }
    if (0 <= own->begins) {
        begin(own->begins);
        own->begins = -1;
    }
    if (own->over) {
        mca_pml_umrddt_wait_cancel(&own->wait);
    }
    return own->over;
}

/* One pass retries these waits, in this order, and returns this result. */
static void pass(const char *expected, int done)
{
    memset(retried, 0, sizeof(retried));
    CHECK(done == mca_pml_umrddt_progress());
    CHECK(0 == strcmp(expected, retried));
    CHECK(mca_pml_umrddt.waits == opal_list_get_size(&mca_pml_umrddt.polled));
}

/* All waits but the last. @param[in] stays  bit i: wait i stays in the list during its retry */
static void all_begin(unsigned stays)
{
    for (int i = 0; i < WAITS; ++i) {
        OBJ_CONSTRUCT(&polled[i].wait, mca_pml_umrddt_wait_t);
        polled[i].stays = 0 != (1 & stays >> i);
        polled[i].over = false;
        polled[i].ends = polled[i].begins = -1;
        if (WAITS - 1 > i) {
            begin(i);
        }
    }
}

static void all_end(const char *order)
{
    pass(order, 0);
    for (int i = 0; i < WAITS; ++i) {
        mca_pml_umrddt_wait_cancel(&polled[i].wait);
    }
    pass("", 0);
}

static void polled_waits(unsigned stays)
{
    mca_pml_umrddt.ticks = 1;
    all_begin(stays);
    pass("01234", 0);
    polled[0].over = polled[2].over = true;
    pass("01234", 2);
    all_end("134");

    /* a retry ends the next wait, the one before and the last one */
    all_begin(stays);
    polled[0].ends = 1;
    pass("0234", 0);
    polled[2].ends = 0;
    pass("0234", 0);
    polled[3].ends = 4;
    pass("23", 0);
    all_end("23");

    /* one that ends and ends the next ones; one begins another, which waits for the next pass */
    all_begin(stays);
    polled[1].over = true;
    polled[1].ends = 2;
    polled[4].begins = 5;
    pass("0134", 1);
    all_end(0 == (1 & stays >> 4) ? "0354" : "0345");
}

/* A watched flag: no retry until it has the base or one of the values after it. */
static void flags(void)
{
    static const uint32_t bases[] = {0, 8, UINT32_MAX - 1};
    uint32_t flag;

    all_begin(0);
    mca_pml_umrddt_wait_cancel(&polled[1].wait);
    polled[5].stays = true;
    for (int i = 0; i < 3; ++i) {
        mca_pml_umrddt.ticks = 1;
        flag = bases[i] - 1;
        mca_pml_umrddt_watch(&polled[5].wait, &flag, bases[i], 4, retry, &polled[5]);
        pass("0234", 0);
        flag = bases[i] + 4;
        pass("0234", 0);
        flag = bases[i] + 3;
        pass("02345", 0);
        flag = bases[i];
        pass("02345", 0);
        flag = bases[i] - 1;
        mca_pml_umrddt.ticks = 0; /* a pass that looks at no flag */
        pass("02345", 0);
        pass("0234", 0);
        polled[5].over = true;
        pass("0234", 0);
        flag = bases[i];
        pass("02345", 1);
        polled[5].over = false;
    }
    all_end("0234");
}

int main(void)
{
    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);

    /* progress is not registered yet, or no longer */
    CHECK(0 == ends(directly, call) && 0 == ends(directly, by_thread));

    mca_pml_umrddt.polling = true;
    CHECK(0 == ends(in_progress, call));
    CHECK(SIGABRT == ends(in_progress, by_thread));
    CHECK(SIGABRT == ends(directly, call));
    CHECK(SIGABRT == ends(after_progress, call));

    /* one at a time */
    CHECK(mca_pml_umrddt_progress_enter() && !mca_pml_umrddt_progress_enter());
    call();
    CHECK(SIGABRT == ends(directly, by_thread));
    mca_pml_umrddt_progress_leave();
    CHECK(mca_pml_umrddt_progress_enter());
    mca_pml_umrddt_progress_leave();

    mca_pml_umrddt.polling = false; /* one thread */
    mca_pml_umrddt.active = 1;
    OBJ_CONSTRUCT(&mca_pml_umrddt.polled, opal_list_t);
    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        OBJ_CONSTRUCT(&mca_pml_umrddt.waiting[role], opal_list_t);
    }
    OBJ_CONSTRUCT(&mca_pml_umrddt.credit, opal_list_t);
    for (unsigned stays = 0; stays < 1U << WAITS; ++stays) {
        polled_waits(stays);
    }
    flags();
    printf("%lu checks\n", checks);
    return 0;
}
