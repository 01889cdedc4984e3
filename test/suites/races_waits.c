/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Linked into the programs by run_races, and into nothing else: what waits and tests looks at the
 * requests first, in code that ThreadSanitizer sees, and calls libmpi when they are complete.
 * Without this it does not know that whoever sees a request complete comes after whoever completed
 * it, nor that who gets the request from the host's pool next comes after both: libmpi gives it
 * back itself.
 */

#include "races.h"

#include <string.h>

/** True if there is anything to wait for: not null, not persistent and not started. */
static bool active(const ompi_request_t *request)
{
    return OMPI_REQUEST_INACTIVE != request->req_state;
}

/** True if the request is complete, which libmpi may find as well from now on. */
static bool complete(ompi_request_t *request)
{
    if (!REQUEST_COMPLETE(request)) {
        return false;
    }
    __tsan_release(request);
    return true;
}

/** Indices of those that are active and complete. @return how many, -1: none is active */
static int look(int count, MPI_Request *requests, int *indices)
{
    int found = 0;
    bool any = false;

    opal_progress();
    for (int i = 0; i < count; ++i) {
        if (active(requests[i])) {
            any = true;
            if (complete(requests[i])) {
                indices[found++] = i;
            }
        }
    }
    return any ? found : -1;
}

static int *room(int count)
{
    int *indices = malloc((size_t) (1 + count) * sizeof(*indices));

    if (NULL == indices) {
        abort();
    }
    return indices;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    while (active(*request) && !complete(*request)) {
        opal_progress();
    }
    return PMPI_Wait(request, status);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int index;

    if (0 == look(1, request, &index)) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    return PMPI_Test(request, flag, status);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    int index;

    if (0 == look(1, &request, &index)) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    return PMPI_Request_get_status(request, flag, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses)
{
    for (int i = 0; i < count; ++i) {
        while (active(requests[i]) && !complete(requests[i])) {
            opal_progress();
        }
    }
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    opal_progress();
    for (int i = 0; i < count; ++i) {
        if (active(requests[i]) && !complete(requests[i])) {
            *flag = 0;
            return MPI_SUCCESS;
        }
    }
    return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    int *indices = room(count);
    int found = look(count, requests, indices);
    int first = indices[0];

    free(indices);
    if (0 > found) {
        return PMPI_Testany(count, requests, index, flag, status);
    }
    *flag = 0;
    *index = MPI_UNDEFINED;
    if (0 == found) {
        return MPI_SUCCESS;
    }
    *index = first;
    return PMPI_Test(&requests[first], flag, status);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    int *indices = room(count);
    int found, first;

    do {
        found = look(count, requests, indices);
    } while (0 == found);
    first = indices[0];
    free(indices);
    if (0 > found) {
        return PMPI_Waitany(count, requests, index, status);
    }
    *index = first;
    return PMPI_Wait(&requests[first], status);
}

/** Testsome of those that are complete; @p indices names them. */
static int some(int found, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses)
{
    MPI_Request *those = malloc((size_t) found * sizeof(*those));
    int *theirs = room(found);
    int rc;

    if (NULL == those) {
        abort();
    }
    for (int i = 0; i < found; ++i) {
        those[i] = requests[indices[i]];
    }
    rc = PMPI_Testsome(found, those, done, theirs, statuses);
    if (found != *done) {
        abort();
    }
    for (int i = 0; i < found; ++i) {
        requests[indices[i]] = those[i];
    }
    /* statuses are in the order of theirs */
    for (int i = 0; i < found; ++i) {
        theirs[i] = indices[theirs[i]];
    }
    memcpy(indices, theirs, (size_t) found * sizeof(*indices));
    free(those);
    free(theirs);
    return rc;
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    int found = look(count, requests, indices);

    if (0 > found) {
        return PMPI_Testsome(count, requests, done, indices, statuses);
    }
    *done = 0;
    return 0 == found ? MPI_SUCCESS : some(found, requests, done, indices, statuses);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    int found;

    do {
        found = look(count, requests, indices);
    } while (0 == found);
    if (0 > found) {
        return PMPI_Waitsome(count, requests, done, indices, statuses);
    }
    return some(found, requests, done, indices, statuses);
}
