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
 */

#include "ompi_config.h"

#include <pthread.h>
#include <signal.h>
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
    printf("%lu checks\n", checks);
    return 0;
}
