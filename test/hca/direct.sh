#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Direct puts: from layout to layout without mkeys, with devices that have UMR and with some that have none.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"
all="direct_layouts direct_ranges direct_odd direct_bad direct_many"

# pieces NUMBER SIM_OPTIONS MPIRUN_OPTIONS TEST...: runs with this number of pieces per write
pieces() {
    UMRDDT_TEST_PIECES=$1
    export UMRDDT_TEST_PIECES
    shift
    hca "$UMRDDT_TEST_PIECES pieces in a write" "$@"
}

pieces 14 "" "" write_pieces $all
pieces 1 max_sge=1 "" write_pieces $all
pieces 2 max_sge=2 "" write_pieces $all
pieces 30 "" "--mca btl_umr_write_pieces 30" write_pieces $all
pieces 3 "" "--mca btl_umr_write_pieces 3" write_pieces direct_layouts
pieces 14 max_sq_desc=256 "--mca btl_umr_write_pieces 30" write_pieces direct_layouts
pieces 1 "" "--mca btl_umr_write_pieces 0" write_pieces
hca "send queue of 2" "" "--mca btl_umr_sq_depth 2" direct_layouts direct_many
hca "send queue of 8, everything late" delay=200 "--mca btl_umr_sq_depth 8" direct_ranges direct_many
UMRDDT_TEST_MESSAGE=4096
export UMRDDT_TEST_MESSAGE
hca "small messages of the port" log_max_msg=12 "" direct_ranges direct_layouts
unset UMRDDT_TEST_MESSAGE
hca "RoCE" link=eth "" direct_layouts
hca "pieces far apart" "" "--mca btl_umr_reg_gap 0" direct_regions
hca "no UMR" umr=off "" no_umr $all direct_regions
hca "no UMR, one piece in a write" umr=off,max_sge=1 "" no_umr $all
hca "UMR that fails the self-test" umr=broken "" no_umr direct_layouts direct_regions
hca "no DEVX" devx=0 "" no_umr direct_layouts
hca "no UMR, send queue of 2" umr=off "--mca btl_umr_sq_depth 2" direct_many
hca "the sender breaks" "" "$few" direct_broken
hca "the sender breaks, send queue of 8" delay=200 "$few --mca btl_umr_sq_depth 8" direct_broken
hca "the receiver breaks" "" "$few --mca btl_umr_sq_depth 8" direct_refused
hca "a key that is not the peer's" "" "$few --mca btl_umr_sq_depth 8" direct_stale
finish
