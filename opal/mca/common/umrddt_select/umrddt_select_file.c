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
 * The tuning file, which umrddt_tune writes and pml/umrddt reads; see umrddt_select_model.h first.
 * Its format:
 *
 *     umrddt-model 2
 *     hardware TEXT, or: any
 *     near TEXT        (the measurement by two processes of one node, if any)
 *     far TEXT         (the measurement by processes of two nodes, if any)
 *     # a comment
 *     NAME VALUE, or NAME and the six values of a curve
 */

#include "umrddt_select_file.h"
#include "umrddt_synonyms.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if !defined(UMRDDT_SYSCONFDIR)
#define UMRDDT_SYSCONFDIR "/etc"
#endif

#define TITLE "umrddt-model"
#define ANY   "any"

/** Maximum bytes of a line; longer lines are errors. */
#define LINE 1024

/* ---------------------------------------------------------------------------------------------
 * Hardware
 * ------------------------------------------------------------------------------------------- */

/** Append to a text, as one line, up to its size. Non-printable characters become a blank, and
 * several blanks become one. */
static void append(char *text, const char *more)
{
    size_t length = strlen(text);

    for (; '\0' != *more && length < OPAL_UMRDDT_TUNING_TEXT - 1; ++more) {
        if (isgraph((unsigned char) *more)) {
            text[length++] = *more;
        } else if (0 < length && ' ' != text[length - 1]) {
            text[length++] = ' ';
        }
    }
    text[length] = '\0';
}

static void strip(char *text)
{
    size_t length = strlen(text);

    while (0 < length && isspace((unsigned char) text[length - 1])) {
        text[--length] = '\0';
    }
}

/**
 * The value of the first line of a file that begins with @p key and a colon; without a key, its
 * first line. @return false: not found
 */
static bool value_of(const char *path, const char *key, char *value, size_t room)
{
    char line[LINE];
    bool found = false;
    FILE *file = fopen(path, "re");

    if (NULL == file) {
        return false;
    }
    while (!found && NULL != fgets(line, sizeof(line), file)) {
        const char *begin = line;

        if (NULL != key) {
            if (0 != strncmp(line, key, strlen(key))) {
                continue;
            }
            begin = strchr(line, ':');
            if (NULL == begin) {
                continue;
            }
            ++begin;
        }
        begin += strspn(begin, " \t");
        (void) snprintf(value, room, "%s", begin);
        strip(value);
        found = true;
    }
    (void) fclose(file);
    return found;
}

/**
 * List the distinct values of one file in each directory below @p directory, sorted, with their
 * numbers.
 */
static void inventory(const char *directory, const char *file, const char *key, char *text)
{
    char path[LINE], last[128] = "", value[128], number[24];
    struct dirent **names = NULL;
    int count = scandir(directory, &names, NULL, alphasort), same = 0;

    for (int i = 0; i < count; ++i) {
        if ('.' != names[i]->d_name[0]
            && (size_t) snprintf(path, sizeof(path), "%s/%s/%s", directory, names[i]->d_name, file)
                   < sizeof(path)
            && value_of(path, key, value, sizeof(value))) {
            if (0 != strcmp(value, last)) {
                if (1 < same) {
                    (void) snprintf(number, sizeof(number), " x %d", same);
                    append(text, number);
                }
                append(text, "; ");
                append(text, value);
                (void) snprintf(last, sizeof(last), "%s", value);
                same = 0;
            }
            ++same;
        }
        free(names[i]);
    }
    if (1 < same) {
        (void) snprintf(number, sizeof(number), " x %d", same);
        append(text, number);
    }
    free(names);
}

void opal_umrddt_tuning_hardware(char text[OPAL_UMRDDT_TUNING_TEXT])
{
    char value[128];

    text[0] = '\0';
    append(text, value_of("/proc/cpuinfo", "model name", value, sizeof(value))
                     ? value
                     : "an unknown processor");
    inventory("/proc/driver/nvidia/gpus", "information", "Model", text);
    inventory("/sys/class/infiniband", "hca_type", NULL, text);
    strip(text);
}

bool opal_umrddt_tuning_path(const char *hardware, bool system, char *path, size_t room)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME"), *below = "";
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int length;

    for (const char *c = hardware; '\0' != *c; ++c) {
        hash = (hash ^ (unsigned char) *c) * UINT64_C(0x100000001b3);
    }
    if (system) {
        config = UMRDDT_SYSCONFDIR;
    } else if (NULL == config || '/' != config[0]) {
        if (NULL == home || '/' != home[0]) {
            return false;
        }
        config = home;
        below = "/.config";
    }
    length = snprintf(path, room, "%s%s/umrddt/model-%016" PRIx64 ".txt", config, below, hash);
    return 0 < length && (size_t) length < room;
}

/* ---------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------- */

/**
 * Find a parameter or a curve by its name. @param[out] index  among all. @return NULL: unknown name
 */
static double *find(opal_umrddt_tuning_t *tuning, const char *name, unsigned *count,
                    unsigned *index)
{
    *count = 1;
    *index = 0;
#define FIND_FIGURE(field, value, help) \
    if (0 == strcmp(name, #field)) {    \
        return &tuning->field;          \
    }                                   \
    ++*index;
    OPAL_UMRDDT_TUNING_VALUES(FIND_FIGURE)
    *count = OPAL_UMRDDT_TUNING_CURVE_POINTS;
#define FIND_CURVE(field, help)      \
    if (0 == strcmp(name, #field)) { \
        return tuning->field;        \
    }                                \
    ++*index;
    OPAL_UMRDDT_TUNING_CURVES(FIND_CURVE)
    return NULL;
}

/**
 * Parse a number in the format of the C locale, whatever the application's locale is: digits,
 * optionally a point and more digits.
 *
 * @return false: not a number, or out of range
 */
static bool number(const char **text, double *value)
{
    const char *at = *text;
    double result = 0, unit = 1;
    bool digits = false;

    at += strspn(at, " \t");
    for (; isdigit((unsigned char) *at); ++at) {
        result = 10 * result + (*at - '0');
        digits = true;
    }
    if ('.' == *at) {
        for (++at; isdigit((unsigned char) *at); ++at) {
            unit /= 10;
            result += unit * (*at - '0');
            digits = true;
        }
    }
    if (!digits || ('\0' != *at && !isspace((unsigned char) *at)) || !(1e-6 <= result)
        || !(result <= 1e12)) {
        return false;
    }
    *text = at;
    *value = result;
    return true;
}

/** Parse a line after the two header lines. @return false: invalid */
static bool read_line(const char *line, opal_umrddt_tuning_t *tuning,
                      opal_umrddt_tuning_measured_t *measured)
{
    size_t length = strcspn(line, " \t");
    const char *rest = line + length;
    char name[64];
    double *values;
    unsigned count, index;

    if ('\0' == line[0] || '#' == line[0]) {
        return true;
    }
    if (sizeof(name) <= length) {
        return false;
    }
    if (0 == strncmp(line, UMRDDT_TUNING_OLD_PREFIX, strlen(UMRDDT_TUNING_OLD_PREFIX))) {
        (void) snprintf(name, sizeof(name), "%s%.*s", UMRDDT_TUNING_PREFIX,
                        (int) (length - strlen(UMRDDT_TUNING_OLD_PREFIX)),
                        line + strlen(UMRDDT_TUNING_OLD_PREFIX));
    } else {
        memcpy(name, line, length);
        name[length] = '\0';
    }
    if (0 == strcmp(name, "near") || 0 == strcmp(name, "far")) {
        rest += strspn(rest, " \t");
        (void) snprintf('n' == name[0] ? measured->near : measured->far, OPAL_UMRDDT_TUNING_NOTE,
                        "%s", rest);
        return '\0' != *rest;
    }
    values = find(tuning, name, &count, &index);
    for (unsigned i = 0; NULL != values && i < count; ++i) {
        if (!number(&rest, &values[i])) {
            return false;
        }
    }
    if (NULL == values || '\0' != rest[strspn(rest, " \t")]) {
        return false;
    }
    measured->figure[index] = true;
    return true;
}

/** Parse an open file. */
static opal_umrddt_tuning_file_t read_lines(FILE *file, const char *hardware,
                                            opal_umrddt_tuning_t *tuning,
                                            opal_umrddt_tuning_measured_t *measured, char *wrong)
{
    char line[LINE];
    unsigned number_of = 0;
    int version;

    while (NULL != fgets(line, sizeof(line), file)) {
        if (NULL == strchr(line, '\n') && !feof(file)) {
            (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT, "line %u is too long", number_of + 1);
            return OPAL_UMRDDT_TUNING_FILE_MALFORMED;
        }
        strip(line);
        ++number_of;
        if (1 == number_of) {
            char end;

            if (1 != sscanf(line, TITLE " %d%c", &version, &end)) {
                break;
            }
            if (OPAL_UMRDDT_TUNING_VERSION != version) {
                (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT,
                                "it is of version %d, and this release reads version %d", version,
                                OPAL_UMRDDT_TUNING_VERSION);
                return OPAL_UMRDDT_TUNING_FILE_STALE;
            }
        } else if (2 == number_of) {
            if (0 != strncmp(line, "hardware ", strlen("hardware "))) {
                break;
            }
            if (0 != strcmp(line + strlen("hardware "), hardware)
                && 0 != strcmp(line + strlen("hardware "), ANY)) {
                (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT,
                                "it was measured on other hardware: %.400s",
                                line + strlen("hardware "));
                return OPAL_UMRDDT_TUNING_FILE_FOREIGN;
            }
            measured->any = 0 == strcmp(line + strlen("hardware "), ANY);
        } else if (!read_line(line, tuning, measured)) {
            (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT, "line %u makes no sense: %.200s",
                            number_of, line);
            return OPAL_UMRDDT_TUNING_FILE_MALFORMED;
        }
    }
    if (2 >= number_of) {
        (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT,
                        "it does not begin as such a file does, or ends at once");
        return OPAL_UMRDDT_TUNING_FILE_MALFORMED;
    }
    return OPAL_UMRDDT_TUNING_FILE_GOOD;
}

opal_umrddt_tuning_file_t opal_umrddt_tuning_read(const char *path, const char *hardware,
                                                  opal_umrddt_tuning_t *tuning,
                                                  opal_umrddt_tuning_measured_t *measured,
                                                  char wrong[OPAL_UMRDDT_TUNING_TEXT])
{
    opal_umrddt_tuning_t read;
    opal_umrddt_tuning_measured_t measured_values;
    opal_umrddt_tuning_file_t result;
    unsigned count, copy, pack;
    FILE *file = fopen(path, "re");

    if (NULL == file) {
        (void) snprintf(wrong, OPAL_UMRDDT_TUNING_TEXT, "%s", strerror(errno));
        return OPAL_UMRDDT_TUNING_FILE_ABSENT;
    }
    opal_umrddt_tuning_default(&read);
    memset(&measured_values, 0, sizeof(measured_values));
    result = read_lines(file, hardware, &read, &measured_values, wrong);
    (void) fclose(file);
    /* files of older releases have no cpu_pack: use cpu_copy for both */
    find(&read, "cpu_copy", &count, &copy);
    find(&read, "cpu_pack", &count, &pack);
    if (measured_values.figure[copy] && !measured_values.figure[pack]) {
        memcpy(read.cpu_pack, read.cpu_copy, sizeof(read.cpu_pack));
    }
    if (OPAL_UMRDDT_TUNING_FILE_GOOD == result) {
        *tuning = read;
        if (NULL != measured) {
            *measured = measured_values;
        }
    }
    return result;
}

/* ---------------------------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------------------------- */

/** Write a number in the format that number() parses, in any locale, with 0, 3 or 6 decimals. */
static void write_number(FILE *file, double value)
{
    int digits = value < 1 ? 6 : value < 100 ? 3 : 0;
    double scale = 1;
    uint64_t scaled;

    for (int i = 0; i < digits; ++i) {
        scale *= 10;
    }
    scaled = (uint64_t) llround(value * scale);
    if (0 == scaled) {
        scaled = 1;
    }
    (void) fprintf(file, " %" PRIu64, scaled / (uint64_t) scale);
    if (0 < digits) {
        (void) fprintf(file, ".%0*" PRIu64, digits, scaled % (uint64_t) scale);
    }
}

int opal_umrddt_tuning_write(FILE *file, const char *hardware, const opal_umrddt_tuning_t *tuning,
                             const opal_umrddt_tuning_measured_t *measured)
{
    const bool *was = measured->figure;

    (void) fprintf(file, TITLE " %d\nhardware %s\n", OPAL_UMRDDT_TUNING_VERSION, hardware);
    if ('\0' != measured->near[0]) {
        (void) fprintf(file, "near %s\n", measured->near);
    }
    if ('\0' != measured->far[0]) {
        (void) fprintf(file, "far %s\n", measured->far);
    }
    (void) fprintf(file, "# us, and bytes a us\n");
#define WRITE_FIGURE(field, value, help)                                                        \
    (void) fprintf(file, "# %s%s\n%s" #field, help, *was ? "" : " (not measured, the default)", \
                   *was ? "" : "# ");                                                           \
    write_number(file, tuning->field);                                                          \
    (void) fprintf(file, "\n");                                                                 \
    ++was;
    OPAL_UMRDDT_TUNING_VALUES(WRITE_FIGURE)
    (void) fprintf(file, "# by blocks of 8, 64, 512, 4096, 32768 and 262144 bytes\n");
#define WRITE_CURVE(field, help)                                                                \
    (void) fprintf(file, "# %s%s\n%s" #field, help, *was ? "" : " (not measured, the default)", \
                   *was ? "" : "# ");                                                           \
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {                                 \
        write_number(file, tuning->field[i]);                                                   \
    }                                                                                           \
    (void) fprintf(file, "\n");                                                                 \
    ++was;
    OPAL_UMRDDT_TUNING_CURVES(WRITE_CURVE)
    return 0 == fflush(file) && !ferror(file) ? 0 : -1;
}

/* ---------------------------------------------------------------------------------------------
 * Merging measurements
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the earlier value of a parameter is kept. */
static bool stays(const char *name, bool was, bool is, bool wire_was)
{
    return was
           && (!is
               || (wire_was
                   && (0 == strncmp(name, "hca_", strlen("hca_"))
                       || 0 == strcmp(name, "gpu_flush"))));
}

void opal_umrddt_tuning_add(opal_umrddt_tuning_t *tuning, opal_umrddt_tuning_measured_t *measured,
                            const opal_umrddt_tuning_t *before,
                            const opal_umrddt_tuning_measured_t *measured_before)
{
    /* an HCA that writes to its own node does not use the wire */
    const bool wire_was = '\0' == measured->far[0] && '\0' != measured_before->far[0];
    const bool *was = measured_before->figure;
    bool *is = measured->figure;

#define ADD(field, ...)                                                \
    if (stays(#field, *was, *is, wire_was)) {                          \
        memcpy(&tuning->field, &before->field, sizeof(before->field)); \
        *is = true;                                                    \
    }                                                                  \
    ++was;                                                             \
    ++is;
    OPAL_UMRDDT_TUNING_VALUES(ADD)
    OPAL_UMRDDT_TUNING_CURVES(ADD)
    if ('\0' == measured->near[0]) {
        memcpy(measured->near, measured_before->near, sizeof(measured->near));
    }
    if ('\0' == measured->far[0]) {
        memcpy(measured->far, measured_before->far, sizeof(measured->far));
    }
}

/** Read a file, or report its error. @p named: by the user */
static bool find_in(const char *path, const char *hardware, bool named,
                    opal_umrddt_tuning_t *tuning, char source[OPAL_UMRDDT_TUNING_TEXT],
                    opal_umrddt_tuning_report_t report)
{
    char wrong[OPAL_UMRDDT_TUNING_TEXT];
    const opal_umrddt_tuning_file_t result =
        opal_umrddt_tuning_read(path, hardware, tuning, NULL, wrong);

    if (OPAL_UMRDDT_TUNING_FILE_GOOD == result) {
        (void) snprintf(source, OPAL_UMRDDT_TUNING_TEXT, "%.500s", path);
        return true;
    }
    if (named || OPAL_UMRDDT_TUNING_FILE_ABSENT != result) {
        report(path, wrong, hardware);
    }
    return false;
}

bool opal_umrddt_tuning_find(const char *model, opal_umrddt_tuning_t *tuning,
                             char source[OPAL_UMRDDT_TUNING_TEXT],
                             opal_umrddt_tuning_report_t report)
{
    char hardware[OPAL_UMRDDT_TUNING_TEXT], path[1024];

    opal_umrddt_tuning_default(tuning);
    (void) snprintf(source, OPAL_UMRDDT_TUNING_TEXT, "defaults, not measured here (umrddt_tune)");
    if (0 == strcmp(model, "none")) {
        return false;
    }
    if (0 == strcmp(model, "defaults")) {
        return true;
    }
    opal_umrddt_tuning_hardware(hardware);
    if ('\0' != model[0]) {
        return find_in(model, hardware, true, tuning, source, report);
    }
    return (opal_umrddt_tuning_path(hardware, false, path, sizeof(path))
            && find_in(path, hardware, false, tuning, source, report))
           || (opal_umrddt_tuning_path(hardware, true, path, sizeof(path))
               && find_in(path, hardware, false, tuning, source, report));
}
