/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The identity that pml/umrddt reads, compiled with the file under test; see fuzz_modex.c. */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

#include "fuzz_modex.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_modex.c"

mca_pml_umrddt_t mca_pml_umrddt;
mca_pml_base_component_t mca_pml_umrddt_component;
opal_umrddt_collectives_t opal_umrddt_collectives;

/* Of mca_pml_umrddt_publish, which is not called here. */
uint64_t opal_umrddt_gpu_ipc_domain(void)
{
    return 7;
}

void fuzz_modex_pml(fuzz_bytes_t *input)
{
    static const uint8_t no_cookie[MCA_PML_UMRDDT_COOKIE_LEN];
    static opal_proc_t other;
    mca_pml_umrddt_identity_t identity = {.version = MCA_PML_UMRDDT_WIRE_VERSION};
    mca_pml_umrddt_peer_t peer = {.proc = &other};
    uint8_t kind = fuzz_byte(input);
    bool right;

    other.proc_arch = opal_proc_local_get()->proc_arch;
    other.proc_name = opal_proc_local_get()->proc_name;
    ++other.proc_name.vpid;
    mca_pml_umrddt.self.version = MCA_PML_UMRDDT_WIRE_VERSION;
    mca_pml_umrddt.self.host = 7;
    identity.flags = fuzz_byte(input);
    identity.host = fuzz_byte(input) & 7;
    memset(identity.cookie, 0x33, sizeof(identity.cookie));
    if (0 == (kind & 3)) {
        fuzz_modex_size = fuzz_take(input, 100, &fuzz_modex_bytes);
    } else {
        fuzz_patch(input, &identity, sizeof(identity));
        fuzz_modex_bytes = (const uint8_t *) &identity;
        fuzz_modex_size = sizeof(identity) - (0 != (kind & 4) ? fuzz_below(input, 32) : 0);
    }
    if (0 == (kind & 8)) {
        right = sizeof(identity) == fuzz_modex_size
                && 0 == memcmp(fuzz_modex_bytes, &mca_pml_umrddt.self.version, 4);
    } else {
        fuzz_modex_size = SIZE_MAX;
        right = false;
    }
    mca_pml_umrddt_identify(&peer);
    FUZZ_CHECK(right == peer.capable);
    FUZZ_CHECK(peer.capable
               || (!peer.has_hca && !peer.has_gpu && !peer.same_host
                   && 0 == memcmp(peer.cookie, no_cookie, sizeof(no_cookie))));
}
