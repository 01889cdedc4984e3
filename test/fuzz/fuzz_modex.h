/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The modex data of other processes comes from the input. Include this before the code that reads
 * the modex. */

#ifndef TEST_FUZZ_MODEX_H
#define TEST_FUZZ_MODEX_H

#include "fuzz.h"

/** The data of a process: a copy, as the modex returns one. */
int fuzz_modex_get(void **datum, size_t *size);

/** That; SIZE_MAX: nothing. */
extern const uint8_t *fuzz_modex_bytes;
extern size_t fuzz_modex_size;

/** The same for the identity of pml/umrddt. */
void fuzz_modex_pml(fuzz_bytes_t *input);

#undef OPAL_MODEX_RECV
#define OPAL_MODEX_RECV(rc, component, name, datum, size) \
    do {                                                  \
        (void) (component);                               \
        (void) (name);                                    \
        (rc) = fuzz_modex_get((void **) (datum), (size)); \
    } while (0)

#endif /* TEST_FUZZ_MODEX_H */
