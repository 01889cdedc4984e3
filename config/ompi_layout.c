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
 * Compiled and run by configure: do the devel headers describe the structures of the library that
 * programs get? The library has the size of each class, the symbol tables have the sizes of
 * variables, and names of known variables are at known offsets. Writes each difference to the file
 * conftest.layout; exit status 0: none; 1: there are some; 2: nothing could be compared.
 */

#include "ompi_config.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#if OPAL_MAJOR_VERSION >= 5
#include "opal/mca/threads/mutex.h"
#else
#include "opal/threads/mutex.h"
#endif
#include "opal/util/info_subscriber.h"
#include "opal/util/proc.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

typedef struct known_t {
    const char *symbol;
    size_t size; /**< by the headers */
} known_t;

#define CLASS(type) #type "_class", sizeof(type)
static const known_t classes[] = {
    {CLASS(opal_object_t)},
    {CLASS(opal_list_item_t)},
    {CLASS(opal_list_t)},
    {CLASS(opal_free_list_t)},
    {CLASS(opal_free_list_item_t)},
    {CLASS(opal_hash_table_t)},
    {CLASS(opal_mutex_t)},
    {CLASS(opal_convertor_t)},
    {CLASS(opal_datatype_t)},
    {CLASS(opal_infosubscriber_t)},
    {CLASS(opal_proc_t)},
    {CLASS(mca_base_var_file_value_t)},
    {CLASS(mca_btl_base_selected_module_t)},
    {CLASS(ompi_communicator_t)},
    {CLASS(ompi_datatype_t)},
    {CLASS(ompi_group_t)},
    {CLASS(ompi_message_t)},
    {CLASS(ompi_request_t)},
    {CLASS(ompi_win_t)},
    {CLASS(mca_pml_base_request_t)},
};

static const known_t variables[] = {
    {"mca_pml", sizeof(mca_pml_base_module_t)},
    {"mca_pml_base_selected_component", sizeof(mca_pml_base_component_t)},
    {"mca_bml", sizeof(mca_bml_base_module_t)},
    {"mca_btl_self", sizeof(mca_btl_base_module_t)}, /* in a file of its own in 4.1 */
    {"opal_btl_base_framework", sizeof(mca_base_framework_t)},
    {"ompi_mpi_comm_world", sizeof(ompi_predefined_communicator_t)},
    {"ompi_mpi_int", sizeof(ompi_predefined_datatype_t)},
    {"ompi_request_functions", sizeof(ompi_request_fns_t)},
};

/** Text that the library has at an offset of a variable; @p at: a pointer to it, or the text. */
typedef struct text_t {
    const char *symbol;
    const char *member;
    size_t offset;
    bool is_pointer;
    const char *text;
} text_t;

static const text_t texts[] = {
    {"opal_btl_base_framework", "framework_project",
     offsetof(mca_base_framework_t, framework_project), true, "opal"},
    {"opal_btl_base_framework", "framework_name", offsetof(mca_base_framework_t, framework_name),
     true, "btl"},
#if OPAL_MAJOR_VERSION < 6 /* then allocated by MPI_Init */
    {"ompi_mpi_int", "name", offsetof(ompi_datatype_t, name), false, "MPI_INT"},
#endif
};

static int different, compared;
static FILE *out;

static void compare(const char *name, size_t in_headers, size_t in_library)
{
    ++compared;
    if (in_headers != in_library) {
        ++different;
        fprintf(out, "%s: %zu bytes by the headers, %zu in the library\n", name, in_headers,
                in_library);
    }
}

/**
 * ompi_proc_t ends with an array of pointers, one for each kind of network components that the
 * library was built with. The headers may know others (contrib/ompi-headers builds none). umrddt
 * neither uses the array nor makes such objects.
 */
static void compare_proc(const opal_class_t *class)
{
    const size_t pointer = sizeof(void *);
    const size_t others = sizeof(ompi_proc_t) - sizeof(((ompi_proc_t *) NULL)->proc_endpoints);
    const size_t in_library = NULL == class ? sizeof(ompi_proc_t) : class->cls_sizeof;

    if (in_library < others || others + 8 * pointer < in_library
        || 0 != (in_library - others) % pointer) {
        compare("ompi_proc_t", sizeof(ompi_proc_t), in_library);
    }
}

static void *find(const char *symbol, const char *directory)
{
    void *at = dlsym(RTLD_DEFAULT, symbol), *file;
    char path[4096];

    if (NULL == at && 0 == strncmp(symbol, "mca_", 4)
        && (int) sizeof(path) > snprintf(path, sizeof(path), "%s/%s.so", directory, symbol)) {
        file = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        at = NULL == file ? NULL : dlsym(file, symbol);
    }
    return at;
}

int main(void)
{
    const char *directory = getenv("UMRDDT_PKGLIBDIR");
    char release[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    out = fopen("conftest.layout", "w");
    if (NULL == out) {
        return 2;
    }
    directory = NULL == directory ? "" : directory;
    MPI_Get_library_version(release, &length); /* so that the library is linked */
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); ++i) {
        const opal_class_t *class = find(classes[i].symbol, directory);

        /* the name proves that opal_class_t itself is right */
        if (NULL != class && NULL != class->cls_name
            && 0 == strncmp(class->cls_name, classes[i].symbol, strlen(class->cls_name))) {
            compare(class->cls_name, classes[i].size, class->cls_sizeof);
        }
    }
    compare_proc(find("ompi_proc_t_class", directory));
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
        void *at = find(variables[i].symbol, directory);
        const ElfW(Sym) *entry = NULL;
        Dl_info info;

        if (NULL != at && 0 != dladdr1(at, &info, (void **) &entry, RTLD_DL_SYMENT) && NULL != entry
            && 0 != entry->st_size) {
            compare(variables[i].symbol, variables[i].size, entry->st_size);
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && 0 == different; ++i) {
        const char *at = find(texts[i].symbol, directory);

        if (NULL == at) {
            continue;
        }
        at += texts[i].offset;
        at = texts[i].is_pointer ? *(const char *const *) (const void *) at : at;
        ++compared;
        if (NULL == at || 0 != strncmp(at, texts[i].text, strlen(texts[i].text))) {
            ++different;
            fprintf(out, "%s: %s is at another offset\n", texts[i].symbol, texts[i].member);
        }
    }
    if (0 == different && 0 != compared) {
        fprintf(out, "%d sizes and offsets\n", compared);
    }
    fclose(out);
    return 0 != different ? 1 : 0 == compared ? 2 : 0;
}
