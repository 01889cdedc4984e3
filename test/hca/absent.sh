#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Machines and HCAs that cannot be used: no message without an HCA, one message with a bad one.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

if [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then
    absent "no hca" none "" "no RDMA device\|no mlx5 device" 0
else
    echo "not looked at: a machine without a hca (this one has some)"
fi
absent "no UMR, and peers may have nothing else" umr=off "OMPI_MCA_btl_umr_plain_keys=0" "mlx5_0:1 creates no indirect mkeys" 1
absent "wrong bytes, and peers may have nothing else" umr=broken "OMPI_MCA_btl_umr_plain_keys=0" "mlx5_0:1 failed the UMR self-test: .*wrong bytes" 1
absent "no such device" "" "OMPI_MCA_btl_umr_device=mlx5_7" 'no RDMA device named "mlx5_7"' 1
absent "no such port" "" "OMPI_MCA_btl_umr_device=mlx5_0:9" "mlx5_0 has no port 9" 1
absent "not a name" "" "OMPI_MCA_btl_umr_device=:1" 'no RDMA device named ":1"' 1
absent "no such GID" link=eth "OMPI_MCA_btl_umr_gid_index=200" "GID 200" 1
hca "a device by name" devices=2 "--mca btl_umr_device mlx5_1:1" plain_keys
hca "parameters out of range" "" "--mca btl_umr_sq_depth 0 --mca btl_umr_max_entries 60 \
    --mca btl_umr_long_entries 70000 --mca btl_umr_long_mkeys 0 --mca btl_umr_list_bytes 1 --mca btl_umr_mtu 1000 --mca btl_umr_timeout 99 --mca btl_umr_max_key_bytes 1" random_layouts

for variant in 0 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    hca "what a peer without a hca may publish" "" "" --modex $variant
done

echo "== documented parameters"
ompi_info --param btl umr --level 9 --parsable >parameters.out
for name in device max_hcas gid_index pkey service_level traffic_class mkeys mkeys_step mkeys_low mkeys_max max_entries long_entries long_mkeys list_bytes strided max_key_bytes write_pieces sq_depth rq_depth srq_depth \
    reg_cache_size reg_gap timeout retry_count mtu plain_keys selftest; do
    if ! grep -q "^mca:btl:umr:param:btl_umr_$name:help:...*" parameters.out; then
        echo "FAILED: btl_umr_$name is not documented"
        failures=$((failures + 1))
    fi
done
rm -f parameters.out
finish
