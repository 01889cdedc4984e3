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
 * Differences between the releases of Open MPI that umrddt builds against (4.1, 5.0 and 6.0). All
 * tests of the release belong here. Include it after opal_config.h (or ompi_config.h).
 */

#ifndef UMRDDT_COMPAT_H
#define UMRDDT_COMPAT_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "opal/runtime/opal.h"

#define UMRDDT_OPAL_RELEASE (OPAL_MAJOR_VERSION * 100 + OPAL_MINOR_VERSION)

#if UMRDDT_OPAL_RELEASE < 401 || (UMRDDT_OPAL_RELEASE > 401 && UMRDDT_OPAL_RELEASE < 500) \
    || (UMRDDT_OPAL_RELEASE > 500 && UMRDDT_OPAL_RELEASE < 600) || UMRDDT_OPAL_RELEASE > 600
#error "umrddt builds against Open MPI 4.1.x, 5.0.x and 6.0.x: take one of these releases"
#endif

#if UMRDDT_OPAL_RELEASE >= 500
#include "opal/mca/pmix/pmix-internal.h"
#define UMRDDT_PMIX_GLOBAL PMIX_GLOBAL
#else
#include "opal/mca/pmix/pmix.h"
#define UMRDDT_PMIX_GLOBAL OPAL_PMIX_GLOBAL
#endif

/* Converts preprocessor numbers to text. */
#define UMRDDT_TEXT_OF(number) #number
#define UMRDDT_TEXT(number)    UMRDDT_TEXT_OF(number)

/* Mutexes and the atomic macros of threads: 5.0 moved the headers. */
#if UMRDDT_OPAL_RELEASE >= 500
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#else
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#endif

/*
 * Components are built with hidden symbols except for their structure. Open MPI's own macro for
 * exported symbols is empty where its configure did not find the attribute, or visibility was
 * disabled.
 */
#define UMRDDT_COMPONENT __attribute__((visibility("default")))

/* Put it after a component's structure. The libraries of 6.0 find a component within them by a
 * pointer. */
#include "opal/mca/mca.h"
#if UMRDDT_OPAL_RELEASE >= 600
#define UMRDDT_COMPONENT_INIT(project, framework, name) \
    MCA_BASE_COMPONENT_INIT(project, framework, name)
#else
#define UMRDDT_COMPONENT_INIT(project, framework, name)
#endif

/* A convertor with this flag does not check for GPU memory. */
#include "opal/datatype/opal_convertor.h"
#if UMRDDT_OPAL_RELEASE >= 500
/* the highest bit, of a parameter with a sign */
#define UMRDDT_CONVERTOR_SKIP_PROBE ((int32_t) CONVERTOR_SKIP_ACCELERATOR_INIT)
#elif defined(CONVERTOR_SKIP_CUDA_INIT)
#define UMRDDT_CONVERTOR_SKIP_PROBE CONVERTOR_SKIP_CUDA_INIT
#else
#define UMRDDT_CONVERTOR_SKIP_PROBE 0
#endif

/* The structure that contains a member; some releases define it in their own headers. */
#include <stddef.h>
#ifndef container_of
#define container_of(ptr, type, member) ((type *) ((char *) (ptr) -offsetof(type, member)))
#endif

/* A communicator's index in this process. */
#if UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_COMM_INDEX(comm) ((comm)->c_index)
#else
#define UMRDDT_COMM_INDEX(comm) ((comm)->c_contextid)
#endif

/* Two words that are equal in all processes of a communicator. A later one may have them, too. */
#if UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_COMM_ID(comm)                                          \
    {                                                                 \
        (comm)->c_contextid.cid_base, (comm)->c_contextid.cid_sub.u64 \
    }
#else
#define UMRDDT_COMM_ID(comm)   \
    {                          \
        (comm)->c_contextid, 0 \
    }
#endif

/* The value of an info key. Returns true and fills value (cut to size) if the key is there. */
#include "opal/util/info.h"
#if UMRDDT_OPAL_RELEASE >= 500
#include "opal/class/opal_cstring.h"
#include "opal/util/string_copy.h"
#endif
static inline bool umrddt_info_get(opal_info_t *info, const char *key, char *value, size_t size)
{
    int found = 0;
#if UMRDDT_OPAL_RELEASE >= 500
    opal_cstring_t *text = NULL;

    if (OPAL_SUCCESS != opal_info_get(info, key, &text, &found) || !found) {
        return false;
    }
    opal_string_copy(value, text->string, size);
    OBJ_RELEASE(text);
    return true;
#else
    return OPAL_SUCCESS == opal_info_get(info, key, (int) size - 1, value, &found) && found;
#endif
}

/* Requests that completions of a btl mean completion at the peer: required by 5.0. */
#if UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_BTL_REMOTE_COMPLETION MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#else
#define UMRDDT_BTL_REMOTE_COMPLETION 0
#endif

/* Processes of this job. */
#include "opal/util/proc.h"
static inline bool umrddt_job_size(uint32_t *size)
{
#if UMRDDT_OPAL_RELEASE >= 500
    *size = opal_process_info.num_procs;
    return 0 < *size;
#else
    opal_process_name_t job = {OPAL_PROC_MY_NAME.jobid, OPAL_VPID_WILDCARD};
    uint32_t *value = size;
    int rc;

    OPAL_MODEX_RECV_VALUE(rc, OPAL_PMIX_JOB_SIZE, &job, &value, OPAL_UINT32);
    return OPAL_SUCCESS == rc && 0 < *size;
#endif
}

/* Only in 4.1 the copy function of a datatype's attribute gets the new datatype. */
#if UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_TYPE_COPY_NEW
#else
#define UMRDDT_TYPE_COPY_NEW , struct ompi_datatype_t *umrddt_unused __attribute__((unused))
#endif

/*
 * True if this Open MPI and its PMLs support CUDA memory: compiled in and not disabled. In 5.0 the
 * accelerator framework has the information (its component is "null" in other builds), in a symbol
 * that may be missing.
 */
#if UMRDDT_OPAL_RELEASE >= 500
#include <dlfcn.h>

#include "opal/mca/mca.h"

/* Some packages lack the header of the accelerator framework. */
#if defined(__has_include)
#if __has_include("opal/mca/accelerator/accelerator.h")
#define UMRDDT_HAS_ACCELERATOR_H 1
#endif
#endif
#else
#include "opal/runtime/opal_params.h"
#endif
static inline bool umrddt_knows_cuda(void)
{
#if UMRDDT_OPAL_RELEASE >= 500
    const mca_base_component_t *component = (const mca_base_component_t *) dlsym(
        RTLD_DEFAULT, "opal_accelerator_base_selected_component");

    return NULL != component && 0 == strcmp(component->mca_component_name, "cuda");
#else
    return opal_cuda_support;
#endif
}

/* The pml framework's component version. */
#if UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_1_0
#else
#define UMRDDT_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_0_0
#endif

/* The coll framework's. */
#if UMRDDT_OPAL_RELEASE >= 600
#define UMRDDT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif UMRDDT_OPAL_RELEASE >= 500
#define UMRDDT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define UMRDDT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

/*
 * Arguments of collectives and of one-sided calls. A count is an int, and size_t from 6.0 on; the
 * displacement unit of a window, an int, and ptrdiff_t. Arrays are of int, and from 6.0 on of
 * either width, which the lowest bit of the address indicates. umrddt_far_t is for the
 * displacements of MPI_Neighbor_alltoallw, which are of MPI_Aint in all releases.
 */
#if UMRDDT_OPAL_RELEASE >= 600
#include <assert.h>

#include "opal/util/count_disp_array.h"

typedef size_t umrddt_count_t;
typedef ptrdiff_t umrddt_unit_t;
typedef opal_count_array_t umrddt_counts_t;
typedef opal_disp_array_t umrddt_displs_t;
typedef opal_disp_array_t umrddt_far_t;
#define UMRDDT_COUNTS_OF(ints)      opal_count_array_create(ints)
#define UMRDDT_DISPLS_OF(ints)      opal_disp_array_create(ints)
#define UMRDDT_FAR_OF(aints)        opal_disp_array_create_c(aints)
#define UMRDDT_COUNTS_GET(array, i) opal_count_array_get(array, (size_t) (i))
#define UMRDDT_DISPLS_GET(array, i) ((int64_t) opal_disp_array_get(array, (size_t) (i)))
#define UMRDDT_FAR_GET(array, i)    UMRDDT_DISPLS_GET(array, i)
#else
typedef int umrddt_count_t;
typedef int umrddt_unit_t;
typedef const int *umrddt_counts_t;
typedef const int *umrddt_displs_t;
typedef const ptrdiff_t *umrddt_far_t;
#define UMRDDT_COUNTS_OF(ints)      (ints)
#define UMRDDT_DISPLS_OF(ints)      (ints)
#define UMRDDT_FAR_OF(aints)        (aints)
#define UMRDDT_COUNTS_GET(array, i) ((size_t) (array)[i])
#define UMRDDT_DISPLS_GET(array, i) ((int64_t) (array)[i])
#define UMRDDT_FAR_GET(array, i)    UMRDDT_DISPLS_GET(array, i)
#endif
/* No array, of any of these kinds. */
#define UMRDDT_NO_ARRAY 0

/**
 * Components of another release can load if the libraries have the same names and the symbols
 * happen to exist. All releases of a minor series have the same structures.
 *
 * @param[out] built_for  the series that this component was built for, such as "4.1"
 * @return true if the running Open MPI is of that series, or its release is unknown
 */
static inline bool umrddt_right_release(const char **built_for)
{
    /* Volatile, so that the text is in the binary: a test patches it to another release. */
    static const char *volatile label =
        "umrddt for Open MPI " UMRDDT_TEXT(OPAL_MAJOR_VERSION) "." UMRDDT_TEXT(OPAL_MINOR_VERSION);
    const char *ours = strrchr(label, ' ') + 1;
    int major = -1, minor = -1;
    char theirs[32];

    *built_for = ours;
    if (2 != sscanf(opal_version_string, "%d.%d", &major, &minor)) {
        return true; /* a vendor's version text: rely on the names of the libraries */
    }
    snprintf(theirs, sizeof(theirs), "%d.%d", major, minor);
    return 0 == strcmp(ours, theirs);
}

#endif /* UMRDDT_COMPAT_H */
