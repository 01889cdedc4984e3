#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Every call into libibverbs and libmlx5 fails in turn. Without the helper thread, whose calls have
# no fixed order (pool.sh tests their failures).

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

echo "== faults"
"$limit" --part 300 umrddt_sim mpirun -n 1 --mca pml ob1 --mca btl self,vader --mca btl_umr_mkeys 8 \
    --mca btl_umr_mkeys_step 4 --mca btl_umr_mkeys_low 0 ./fault_test >faults.out 2>faults.err || {
    cat faults.err
    echo "FAILED: faults"
    failures=$((failures + 1))
}
cat faults.out
rm -f faults.out faults.err
finish
