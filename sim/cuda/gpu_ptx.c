/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* What a module's PTX says. See gpu_ptx.h. */

#include "gpu_ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool gpu_ptx_is(const char *text)
{
    for (;;) {
        while (isspace((unsigned char) *text)) {
            text++;
        }
        if (0 != strncmp(text, "//", 2)) {
            return 0 == strncmp(text, ".version", 8) && isspace((unsigned char) text[8]);
        }
        text += strcspn(text, "\n");
    }
}

unsigned gpu_ptx_target(const char *text)
{
    const char *target = strstr(text, "\n.target sm_");

    return NULL == target ? 0 : (unsigned) strtoul(target + strlen("\n.target sm_"), NULL, 10);
}

char *gpu_ptx_entries(const char *text)
{
    static const char entry[] = ".entry";
    const char *at = text;
    size_t used = 1, bytes = 4096;
    char *names = malloc(bytes);

    if (NULL == names) {
        return NULL;
    }
    names[0] = '\n';
    while (NULL != (at = strstr(at, entry))) {
        size_t length;

        at += strlen(entry);
        at += strspn(at, " \t\n");
        length = strcspn(at, " \t\n(");
        if (used + length + 2 > bytes) {
            char *more = realloc(names, bytes += bytes + length);

            if (NULL == more) {
                free(names);
                return NULL;
            }
            names = more;
        }
        memcpy(names + used, at, length);
        names[used + length] = '\n';
        used += length + 1;
    }
    names[used] = '\0';
    return names;
}

bool gpu_ptx_has(const char *entries, const char *name)
{
    size_t length = strlen(name);

    while (NULL != (entries = strchr(entries, '\n'))) {
        entries++;
        if (0 == strncmp(entries, name, length) && '\n' == entries[length]) {
            return true;
        }
    }
    return false;
}
