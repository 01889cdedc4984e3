#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Bytes from layout to layout through the HCA.

. "${srcdir:-.}/common.sh"

hca "all entries" "" "" random_layouts plain_keys shorter_message negative_offsets many_puts bad_puts
hca "4 entries" max_sq_desc=256 "--mca btl_umr_long_entries 0" random_layouts
hca "5 of 52 entries" "" "--mca btl_umr_max_entries 5 --mca btl_umr_long_entries 0" random_layouts
hca "small keys" "" "--mca btl_umr_max_key_bytes 4096" random_layouts
hca "RoCE" link=eth "" random_layouts plain_keys
hca "send queue of 8" "" "--mca btl_umr_sq_depth 8" random_layouts many_puts
hca "send queue of 2" "" "--mca btl_umr_sq_depth 2" many_puts
hca "everything late" delay=300 "--mca btl_umr_sq_depth 8" many_puts random_layouts
hca "receive queue of 4" "" "--mca btl_umr_rq_depth 4" fin_credits
hca "FINs" "" "" fin_credits
hca "no plain keys for peers" "" "--mca btl_umr_plain_keys 0" random_layouts shorter_message
hca "a device each" devices=2 "--mca btl_umr_max_hcas 1" plain_keys random_layouts
hca "no self-test" "" "--mca btl_umr_selftest 0" plain_keys random_layouts
hca "closed and opened again" "" "" again plain_keys again
# Open MPI's own btl framework also has the component open, or UCX is loaded.
HCA_HOST="--mca pml ob1 --mca btl self,vader,umr"
hca "beside ob1's btls" "" "" plain_keys random_layouts again
if ompi_info | grep -q "MCA pml: ucx"; then
    HCA_HOST="--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any"
    hca "beside UCX" "" "" plain_keys random_layouts again
fi
finish
