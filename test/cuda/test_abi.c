/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * umrddt_cuda.h against the CUDA Toolkit's own header: compiled by test_abi.sh once with each, and
 * both print the same. Values are compared when it is compiled, prototypes too: with the Toolkit's
 * header every function is declared twice, and they have to agree.
 */

#include <stdio.h>

#include "umrddt_cuda.h"

#define SAME(name, value)                 _Static_assert((long long) (name) == (value), #name);
#define SAME_ATTRIBUTE(name, value, says) SAME(name, value)
UMRDDT_CUDA_RESULTS(SAME)
UMRDDT_CUDA_POINTER_ATTRIBUTES(SAME)
UMRDDT_CUDA_DEVICE_ATTRIBUTES(SAME_ATTRIBUTE)
UMRDDT_CUDA_CONSTANTS(SAME)

int main(void)
{
#define SIZE(type)           printf("%s %zu\n", #type, sizeof(type));
#define MEMBER(type, member) printf("%s.%s %zu\n", #type, #member, offsetof(type, member));
    UMRDDT_CUDA_LAYOUTS(SIZE, MEMBER)
    return 0;
}
