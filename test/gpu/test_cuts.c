/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Where Open MPI does not store all bytes of single elements, as of long doubles on x86 since 5.0,
 * no first fragment is received.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "mpi.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_cuts.h"

#include "gpu_test.h"

#define ELEMENTS 8
#define ROOM     4096

/* Does MPI_Unpack store all bytes of every second element? */
static bool stores_all(MPI_Datatype type, size_t size)
{
    unsigned char *stream = aligned_alloc(64, ROOM), *memory = aligned_alloc(64, ROOM);
    size_t i, stored = 0, bytes = ELEMENTS * size;
    int position = 0;

    CHECK(NULL != stream && NULL != memory && 2 * bytes <= ROOM);
    memset(memory, 0, ROOM);
    for (i = 0; i < bytes; ++i) {
        stream[i] = (unsigned char) (1 + i % 255);
    }
    CHECK(MPI_SUCCESS
          == MPI_Unpack(stream, (int) bytes, &position, memory, 1, type, MPI_COMM_SELF));
    for (i = 0; i < bytes; ++i) {
        stored += stream[i] == memory[i / size * 2 * size + i % size];
    }
    free(stream);
    free(memory);
    return bytes == stored;
}

int main(int argc, char **argv)
{
    const MPI_Datatype types[] = {MPI_CHAR,        MPI_INT,
                                  MPI_DOUBLE,      MPI_C_DOUBLE_COMPLEX,
                                  MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX};
    opal_umrddt_gpu_cuts_t cuts;
    bool is_cut;

    MPI_Init(&argc, &argv);
    opal_umrddt_gpu_cuts_init(&cuts, 128);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        MPI_Datatype type;
        int size;

        CHECK(MPI_SUCCESS == MPI_Type_size(types[i], &size));
        CHECK(MPI_SUCCESS == MPI_Type_vector(ELEMENTS, 1, 2, types[i], &type));
        CHECK(MPI_SUCCESS == MPI_Type_commit(&type));
        is_cut = opal_umrddt_gpu_is_cut(&cuts, &type->super, 1);
        CHECK(is_cut || stores_all(type, (size_t) size));
        CHECK(!is_cut || 8 < size); /* at most what needs it */
        CHECK(MPI_SUCCESS == MPI_Type_free(&type));
    }
    MPI_Finalize();
    return 0;
}
