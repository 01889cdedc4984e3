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
 * Registration of MCA parameters with error checks. Open MPI reads "banana" as 0 and -5 as a size
 * of 2^64 - 5, and ignores unknown names. Here an invalid number is reported and the default stays,
 * and an unknown name is reported together with the most similar valid one. Include it after
 * opal_config.h (or ompi_config.h). One thread.
 */

#ifndef UMRDDT_PARAMS_H
#define UMRDDT_PARAMS_H

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"

#include "umrddt_help.h"
#include "umrddt_synonyms.h"

extern char **environ; /* declared by unistd.h with _GNU_SOURCE only */

#define UMRDDT_PARAMS_ENV "OMPI_MCA_"
/** The parameter that turns reports of unknown names off. */
#define UMRDDT_PARAMS_SWITCH "pml_umrddt_warn_unknown"
/** Bytes of a text about a parameter. */
#define UMRDDT_PARAMS_TEXT 256
/** Errors of parameters are reported once each, up to this number; further ones may be repeated. */
#define UMRDDT_PARAMS_REPORTED 32

/**
 * True if the text is a number in Open MPI's syntax (decimal, 0x, 0; suffix k, m or g) from @p low
 * to
 * @p high.
 */
static inline bool umrddt_params_is_number(const char *text, int64_t low, uint64_t high)
{
    static const char units[] = "kmg";
    const char *at = text, *unit;
    unsigned long long value;
    bool negative;
    char *end;

    while (isspace((unsigned char) *at)) {
        ++at;
    }
    negative = '-' == *at;
    at += '-' == *at || '+' == *at;
    if (!isdigit((unsigned char) *at)) {
        return false;
    }
    errno = 0;
    value = strtoull(at, &end, 0);
    if (0 != errno) {
        return false;
    }
    unit = strchr(units, tolower((unsigned char) *end));
    if ('\0' != *end && NULL != unit) {
        const int shift = 10 * (int) (unit - units + 1);

        if (value > UINT64_MAX >> shift) {
            return false;
        }
        value <<= shift;
        ++end;
    }
    while (isspace((unsigned char) *end)) {
        ++end;
    }
    return '\0' == *end
           && (negative ? 0 > low && value <= (uint64_t) 0 - (uint64_t) low : value <= high);
}

/** The user's value of a variable. @param[out] where  its source. @return NULL: not set */
static inline const char *umrddt_params_given(const mca_base_var_t *var,
                                              char where[UMRDDT_PARAMS_TEXT])
{
    const mca_base_var_file_value_t *of_file =
        (const mca_base_var_file_value_t *) var->mbv_file_value;
    char name[UMRDDT_PARAMS_TEXT];
    const char *value;

    (void) snprintf(name, sizeof(name), UMRDDT_PARAMS_ENV "%s", var->mbv_full_name);
    value = getenv(name);
    if (NULL != value) {
        (void) snprintf(where, UMRDDT_PARAMS_TEXT, "the environment (%.100s), or mpirun --mca",
                        name);
        return value;
    }
    if (NULL != of_file) {
        (void) snprintf(where, UMRDDT_PARAMS_TEXT, "%s, line %d", of_file->mbvfv_file,
                        of_file->mbvfv_lineno);
        return of_file->mbvfv_value;
    }
    return NULL;
}

/** True if a registered variable has an invalid value, which is then reported. */
static inline bool umrddt_params_is_wrong(int index)
{
    static int reported[UMRDDT_PARAMS_REPORTED];
    static int tellings = 0;
    char where[UMRDDT_PARAMS_TEXT], allowed[UMRDDT_PARAMS_TEXT];
    const mca_base_var_t *var;
    const char *value;
    uint64_t high;
    int64_t low;

    if (0 > index || OPAL_SUCCESS != mca_base_var_get(index, &var) || NULL != var->mbv_enumerator) {
        return false; /* Open MPI reports errors of names itself */
    }
    switch (var->mbv_type) {
    case MCA_BASE_VAR_TYPE_INT:
        low = INT_MIN;
        high = INT_MAX;
        break;
    case MCA_BASE_VAR_TYPE_UNSIGNED_INT:
        low = 0;
        high = UINT_MAX;
        break;
    case MCA_BASE_VAR_TYPE_SIZE_T:
        low = 0;
        high = SIZE_MAX;
        break;
    default:
        return false;
    }
    value = umrddt_params_given(var, where);
    if (NULL == value || umrddt_params_is_number(value, low, high)) {
        return false;
    }
    for (int i = 0; i < tellings; ++i) {
        if (reported[i] == index) {
            return true;
        }
    }
    if (UMRDDT_PARAMS_REPORTED > tellings) {
        reported[tellings++] = index;
    }
    (void) snprintf(allowed, sizeof(allowed),
                    "a whole number from %lld to %llu; k, m or g behind it are 2^10, 2^20, 2^30",
                    (long long) low, (unsigned long long) high);
    umrddt_show_help("help-mca-pml-umrddt.txt", "bad-value", true, var->mbv_full_name, value, where,
                     allowed);
    return true;
}

/** Register the old names of a parameter. @return true if one of them has an invalid value */
static inline bool umrddt_params_synonyms(const mca_base_component_t *component, int index)
{
    const mca_base_var_t *var;
    bool is_wrong = false;

    if (OPAL_SUCCESS != mca_base_var_get(index, &var)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(umrddt_param_synonyms) / sizeof(umrddt_param_synonyms[0]); ++i) {
        const umrddt_synonym_t *synonym = &umrddt_param_synonyms[i];

        if (0 == strcmp(synonym->name, var->mbv_full_name)) {
            is_wrong =
                umrddt_params_is_wrong(mca_base_var_register_synonym(
                    index, component->mca_project_name, component->mca_type_name,
                    component->mca_component_name, synonym->old, MCA_BASE_VAR_SYN_FLAG_DEPRECATED))
                || is_wrong;
        }
    }
    return is_wrong;
}

/**
 * As mca_base_component_var_register. @param[in,out] storage  the default; then the value in use
 */
static inline void umrddt_params_register(const mca_base_component_t *component, const char *name,
                                          const char *help, mca_base_var_type_t type,
                                          mca_base_var_enum_t *values,
                                          mca_base_var_info_lvl_t level, void *storage)
{
    const size_t size = MCA_BASE_VAR_TYPE_SIZE_T == type ? sizeof(size_t) : sizeof(int);
    const bool is_number = NULL == values
                           && (MCA_BASE_VAR_TYPE_SIZE_T == type || MCA_BASE_VAR_TYPE_INT == type
                               || MCA_BASE_VAR_TYPE_UNSIGNED_INT == type);
    unsigned char before[sizeof(size_t)];
    bool is_wrong;
    int index;

    if (is_number) {
        memcpy(before, storage, size);
    }
    index = mca_base_component_var_register(component, name, help, type, values, 0, 0, level,
                                            MCA_BASE_VAR_SCOPE_READONLY, storage);
    is_wrong = umrddt_params_synonyms(component, index);
    if (is_number && (umrddt_params_is_wrong(index) || is_wrong)) {
        memcpy(storage, before, size);
    }
}

/** Edit distance: letters to change, add or remove to get from one name to the other. */
static inline unsigned umrddt_params_distance(const char *one, const char *other)
{
    unsigned row[64], corner, above, least;
    const size_t n = strlen(other);

    if (sizeof(row) / sizeof(row[0]) <= n) {
        return UINT_MAX;
    }
    for (size_t k = 0; k <= n; ++k) {
        row[k] = (unsigned) k;
    }
    for (size_t i = 0; '\0' != one[i]; ++i) {
        corner = row[0]++;
        for (size_t k = 0; k < n; ++k) {
            above = row[k + 1];
            least = corner + (one[i] != other[k]);
            least = least > above + 1 ? above + 1 : least;
            row[k + 1] = least > row[k] + 1 ? row[k] + 1 : least;
            corner = above;
        }
    }
    return row[n];
}

/**
 * Report a name that begins with @p prefix, if there is no such parameter.
 *
 * @param where  the source of the name
 */
static inline void umrddt_params_look_at(const char *name, const char *prefix, const char *where)
{
    char close[UMRDDT_PARAMS_TEXT] = "none is like it";
    const size_t length = strlen(prefix);
    unsigned best = UINT_MAX;
    int index;

    if (0 != strncmp(name, prefix, length)
        || OPAL_SUCCESS == mca_base_var_find_by_name(name, &index)) {
        return;
    }
    for (index = 0; index < mca_base_var_get_count(); ++index) {
        const mca_base_var_t *var;
        unsigned distance;

        if (OPAL_SUCCESS != mca_base_var_get(index, &var)
            || 0 != strncmp(var->mbv_full_name, prefix, length)) {
            continue;
        }
        distance = umrddt_params_distance(name + length, var->mbv_full_name + length);
        if (distance < best && distance <= strlen(name + length) / 2) {
            best = distance;
            (void) snprintf(close, sizeof(close), "%s", var->mbv_full_name);
        }
    }
    umrddt_show_help("help-mca-pml-umrddt.txt", "unknown-parameter", true, name, where, close);
}

/**
 * The parameter of a line of a file ("name = value"), which is cut into both.
 *
 * @return NULL: another line
 */
static inline char *umrddt_params_of_line(char *line, char **value)
{
    char *name = line + strspn(line, " \t"), *end = name + strcspn(name, " \t=\n");

    *value = end + strspn(end, " \t");
    if (end == name || '#' == *name || '=' != **value) {
        return NULL;
    }
    *value += 1 + strspn(*value + 1, " \t\"");
    *end = '\0';
    return name;
}

/** What is read from files and the environment. */
typedef struct umrddt_params_seen_t {
    const char *prefix; /**< of unknown parameters, which are reported; NULL: the value of
                           UMRDDT_PARAMS_SWITCH is looked for */
    char value;         /**< its first letter; NUL: not found */
} umrddt_params_seen_t;

/**
 * Read parameter files again: Open MPI has no function for the names that it found there. It has
 * reported errors of the syntax, which are skipped here.
 *
 * @param files      the parameter that has the list of files
 * @param separator  between the files; the first file has precedence
 */
static inline void umrddt_params_read(const char *files, const char *separator,
                                      umrddt_params_seen_t *seen)
{
    const char *const *names = NULL;
    char *copy, *rest;
    int index;

    if (OPAL_SUCCESS != mca_base_var_find_by_name(files, &index)
        || OPAL_SUCCESS != mca_base_var_get_value(index, &names, NULL, NULL) || NULL == names
        || NULL == *names || NULL == (copy = strdup(*names))) {
        return;
    }
    for (char *path = strtok_r(copy, separator, &rest); NULL != path;
         path = strtok_r(NULL, separator, &rest)) {
        char *line = NULL, *name, *value, where[UMRDDT_PARAMS_TEXT], found = '\0';
        FILE *file = fopen(path, "r");
        size_t room = 0;

        for (int number = 1; NULL != file && 0 <= getline(&line, &room, file); ++number) {
            name = umrddt_params_of_line(line, &value);
            if (NULL == name) {
                continue;
            }
            if (NULL != seen->prefix) {
                (void) snprintf(where, sizeof(where), "%s, line %d", path, number);
                umrddt_params_look_at(name, seen->prefix, where);
            } else if (0 == strcmp(name, UMRDDT_PARAMS_SWITCH)) {
                found = *value;
            }
        }
        seen->value = '\0' == seen->value ? found : seen->value;
        free(line);
        if (NULL != file) {
            (void) fclose(file);
        }
    }
    free(copy);
}

static inline void umrddt_params_read_all(umrddt_params_seen_t *seen)
{
    umrddt_params_read("mca_base_override_param_file", ":", seen);
    umrddt_params_read("mca_base_param_files", ",", seen);
}

/** The user's value of UMRDDT_PARAMS_SWITCH. It is a parameter of pml/umrddt, which may not be
 * open. */
static inline bool umrddt_params_is_on(void)
{
    const char *given = getenv(UMRDDT_PARAMS_ENV UMRDDT_PARAMS_SWITCH);
    umrddt_params_seen_t seen = {.value = NULL == given ? '\0' : *given};

    if (NULL == given) {
        umrddt_params_read_all(&seen);
    }
    return '\0' == seen.value || NULL == strchr("0fFdDnN", seen.value);
}

/**
 * Report unknown parameters in the environment and in parameter files that begin with a component's
 * prefix ("pml_umrddt_"). The first process of each program of a job does so, once. Call it after
 * all parameters are registered.
 */
static inline void umrddt_params_unknown(const char *prefix)
{
    const size_t length = strlen(UMRDDT_PARAMS_ENV);
    umrddt_params_seen_t seen = {.prefix = prefix};
    char name[UMRDDT_PARAMS_TEXT];
    static bool done = false;

    if (done || !umrddt_help_is_first() || !umrddt_params_is_on()) {
        return;
    }
    done = true;
    for (char **at = environ; NULL != *at; ++at) {
        if (0 == strncmp(*at, UMRDDT_PARAMS_ENV, length)) {
            (void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(*at + length, "="),
                            *at + length);
            umrddt_params_look_at(name, prefix, "the environment, or mpirun --mca");
        }
    }
    umrddt_params_read_all(&seen);
}

#endif /* UMRDDT_PARAMS_H */
