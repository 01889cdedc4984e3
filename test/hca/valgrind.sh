#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# limit: 900
#
# The tests of the HCA component under valgrind: no error, and no definitely lost block, may have a
# function of btl/umr or of the layouts in its stack. Other reports are about Open MPI and libmlx5.

srcdir=${srcdir:-.}
OWN_DEVICES=1
. "$srcdir/common.sh"

command -v valgrind >/dev/null || {
    echo "SKIPPED: no valgrind"
    exit 77
}
# The memory hooks patch functions that have run already: valgrind has to check for that
# (smc-check).
pattern='mca_btl_umr|btl_umr_[a-z_]*\.c|iov_cache[a-z_]*\.c'
options="--tool=memcheck --smc-check=all --leak-check=full --show-leak-kinds=definite,indirect --num-callers=40 --keep-debuginfo=yes --error-limit=no --fair-sched=yes --suppressions=$srcdir/hca.supp"
for file in /usr/share/openmpi/openmpi-valgrind.supp \
    "$(ompi_info --path pkgdatadir --parsable 2>/dev/null | cut -d: -f3)/openmpi-valgrind.supp"; do
    if [ -r "$file" ]; then
        options="$options --suppressions=$file"
        break
    fi
done

logs=$(mktemp -d) || exit 99
trap 'rm -rf "$logs"' EXIT
HCA_WRAPPER="valgrind $options --log-file=$logs/log.%p"
few="--mca btl_umr_timeout 16"
# Few jobs: half of their time is that of MPI_Init and of the report of leaks.
hca "messages, keys, memory, failures" "" "$few --mca btl_umr_sq_depth 8 --mca btl_umr_retry_count 2" plain_keys \
    shorter_message many_mappings bad_ranges hits remapped_address read_only holes fin_credits many_puts closed_in_use \
    broken_by_sender
hca "mkeys by the helper" "" "$few --mca btl_umr_mkeys 16 --mca btl_umr_mkeys_step 4 --mca btl_umr_mkeys_max 40" \
    pool_growing pool_closed

[ "$(cat "$logs"/log.* | grep -c 'ERROR SUMMARY')" -ge 4 ] || {
    echo "FAILED: not every process came to valgrind's end"
    failures=$((failures + 1))
}
# A report is a block of lines between empty ones.
for log in "$logs"/log.*; do
    sed -e 's/^==[0-9]*== \{0,1\}//' "$log" \
        | awk -v RS= -v pattern="$pattern" '/\n +(at|by) 0x/ && $0 ~ pattern { print $0 "\n" }'
done >"$logs/ours"
if [ -s "$logs/ours" ]; then
    echo "FAILED: valgrind has reports of btl/umr:"
    cat "$logs/ours"
    failures=$((failures + 1))
fi
finish
