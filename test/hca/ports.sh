#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The ports that processes use, in which order, and the lanes between them, on whole machines; GIDs,
# partitions and classes of service.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

bad() {
    echo "FAILED: $*"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
}

# ports TITLE SIM_OPTIONS WRAPPER_OPTIONS ENVIRONMENT RANK0 RANK1 [TEXT]: the ports of two processes,
# and a text in the log
ports() {
    # shellcheck disable=SC2086
    UMRDDT_SIM=$2 "$limit" --part 200 umrddt_sim $3 env OMPI_MCA_btl_umr_verbose=1 OMPI_MCA_btl_umr_mkeys=4 $4 mpirun -n 2 \
        --mca pml ob1 --mca btl self,vader "$hca_test" --hcas >"$work/all" 2>"$work/err"
    tr -d '\0' <"$work/all" | grep -a '^rank' | sort >"$work/out"
    if [ "$(cat "$work/out")" != "$(printf 'rank 0: %s\nrank 1: %s' "$5" "$6")" ]; then
        bad "$1"
    elif [ $# -eq 7 ] && ! grep -aq "$7" "$work/err"; then
        bad "$1: no '$7'"
    fi
    echo "== $1"
}

# A DGX H100 with a process for each GPU: NVIDIA's table of the port of each GPU. Ports 1 and 7 are
# for storage, 2 and 8 Ethernet.
# dgx TITLE SIM_OPTIONS ENVIRONMENT
dgx() {
    # shellcheck disable=SC2086
    UMRDDT_SIM=$2 "$limit" --part 300 umrddt_sim --machine dgx-h100 env OMPI_MCA_btl_umr_verbose=10 OMPI_MCA_btl_umr_selftest=0 \
        OMPI_MCA_btl_umr_mkeys=4 OMPI_MCA_btl_umr_mkeys_low=0 OMPI_MCA_btl_umr_check=0 $3 mpirun -n 8 --oversubscribe --tag-output \
        --mca pml ob1 --mca btl self,vader "$hca_test" --table >"$work/all" 2>"$work/err"
    sed 's/^\[[^]]*\]<[a-z]*>: *//' "$work/all" | grep -a '^rank\|^near' >"$work/out"
    sed -n 's/^\[[^]]*[,.]\([0-9]*\)\]<[a-z]*>.*btl:umr: rank \([0-9]*\): lane \([0-9]*\): mlx5_\([0-9]*\):1 to its HCA \([0-9]*\)$/lane \1 \2 \3 \4 \5/p' \
        "$work/err" "$work/all" >>"$work/out"
    said=$(awk '
        BEGIN { split("0 3 4 5 6 9 10 11", table); for (i in table) is_compute[table[i]] = 1 }
        $1 == "rank" {
            rank = $2 + 0
            for (i = 3; i <= NF; i++) { split($i, name, /[_:]/); port[rank, i - 3] = name[2]; others += !(name[2] in is_compute) }
            first += port[rank, 0] == table[rank + 1]
        }
        $1 == "near" { far += $4 != 0 }
        $1 == "lane" { lanes[++count] = $0 }
        END {
            for (i = 1; i <= count; i++) {
                split(lanes[i], f, " ")
                theirs = port[f[3], f[6]]
                dead += (f[5] in is_compute) != (theirs in is_compute)
                crossed += f[4] == 0 && (f[5] != table[f[2] + 1] || theirs != table[f[3] + 1])
            }
            print first + 0, others + 0, count + 0, dead + 0, crossed + 0, far + 0
        }' "$work/out")
    echo "$1: own GPU first, other ports, lanes, dead, crossed, first lane far from the GPU: $said"
    [ "$said" = "8 0 224 0 0 0" ] || bad "$1"
}
all_ib="link=ib,speed=ndr,fabric=c/s/s/c/c/c/c/s/s/c"
dgx "8 GPUs" "" ""
dgx "8 GPUs, all 12 ports alike" "$all_ib" ""
dgx "8 GPUs, compute ports by name" "$all_ib" "OMPI_MCA_btl_umr_device=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11"

# The faster kind of network; the other one if it is named, or if nothing else works.
ports "InfiniBand before Ethernet" "" "--machine dual-port" "" mlx5_0:1 mlx5_0:1 \
    "mlx5_1:1: Ethernet of 100 Gb/s beside InfiniBand of 200 Gb/s: used only if"
ports "Ethernet by name" "" "--machine dual-port" OMPI_MCA_btl_umr_device=mlx5_1 mlx5_1:1 mlx5_1:1
ports "both by name, the order is that of the rates" "" "--machine dual-port" OMPI_MCA_btl_umr_device=mlx5_1,mlx5_0 \
    "mlx5_0:1 mlx5_1:1" "mlx5_0:1 mlx5_1:1"
ports "InfiniBand fails" route=address/ok "--machine dual-port" "" mlx5_1:1 mlx5_1:1 \
    "mlx5_0:1 cannot connect to itself: Cannot assign requested address"
ports "a management port" "" "--machine roce" "" "mlx5_1:1 mlx5_2:1" "mlx5_2:1 mlx5_1:1" \
    "mlx5_0:1: Ethernet of 25 Gb/s beside Ethernet of 100 Gb/s: used only if"
ports "the only visible GPU" "" "--machine roce" CUDA_VISIBLE_DEVICES=1 "mlx5_2:1 mlx5_1:1" "mlx5_2:1 mlx5_1:1"
ports "both equally fast, Ethernet at the GPUs" link=ib/eth,width=4,fabric=s/c "--machine roce" "" "mlx5_1:1 mlx5_2:1" "mlx5_2:1 mlx5_1:1" \
    "mlx5_0:1: InfiniBand of 100 Gb/s beside Ethernet of 100 Gb/s: used only if"
ports "half of the rate, and less" "devices=3,speed=edr/hdr/fdr" "" "" "mlx5_1:1 mlx5_0:1" "mlx5_1:1 mlx5_0:1"

# Ports that are down take no part in the turns.
ports "the first port is down" "devices=3,down=0" "" "" "mlx5_1:1 mlx5_2:1" "mlx5_2:1 mlx5_1:1" "mlx5_0:0: found, distance 255; down"
ports "Ethernet has no partitions" "link=eth" "" OMPI_MCA_btl_umr_pkey=5 mlx5_0:1 mlx5_0:1 "mlx5_0:1: btl_umr_pkey is ignored"

# A port that others cannot reach is not used, and does not keep the others from being used.
ports "no address" "devices=2,link=eth,gids=zero/ll+v4" "" "" mlx5_1:1 mlx5_1:1 "mlx5_0:1: no GID is an address"
ports "no route to itself" "devices=2,link=eth,route=timeout/ok,route_ms=20" "" "" mlx5_1:1 mlx5_1:1 \
    "mlx5_1:1: used, .* UMR: yes"
ports "no route to itself, no UMR" "devices=2,umr=off,route=ok/network" "" "" mlx5_0:1 mlx5_0:1 \
    "not used: mlx5_1:1 cannot connect to itself: Network is unreachable"
! grep -a "not used: mlx5_0" "$work/err" || bad "a line about a port that is used"
ports "UMR of the first port fails" "devices=2,faults=umr:1" "" "" mlx5_1:1 mlx5_0:1 \
    "not used: mlx5_0:1: the ports that are used have UMR: "
! grep -a "UMR of a device failed" "$work/err" || bad "a message about a port that is not used"
ports "UMR of the first port fails, by name" "devices=2,faults=umr:1" "" OMPI_MCA_btl_umr_device=mlx5_0,mlx5_1 mlx5_1:1 mlx5_0:1
[ "$(grep -ac "not used: " "$work/err")" -eq 2 ] || bad "not one line for each port that is not used"
absent "no address at all" link=eth,gids=zero+zero "" "no GID is an address" 1
absent "no address by number" link=eth,gids=ll+zero OMPI_MCA_btl_umr_gid_index=1 "GID 1 is no address" 1
absent "no route, no UMR" umr=off,route=invalid "" "cannot connect to itself" 1
absent "not in the partition" pkeys=0xffff+0x8005 OMPI_MCA_btl_umr_pkey=6 "not in the partition 0x0006" 1

# class TITLE SIM_OPTIONS MPIRUN_OPTIONS "SERVICE_LEVEL TRAFFIC_CLASS PKEY_INDEX GID_INDEX"
class() {
    UMRDDT_TEST_CLASS=$4
    export UMRDDT_TEST_CLASS
    hca "$1" "$2" "--mca btl_umr_mkeys 4 $3" hcas_class plain_keys
}
class "IPv4 before all others" link=eth,gids=zero+ll1+ll+v6+v41+v4 "" "0 106 0 5"
class "global IPv6 before link-local" link=eth,gids=ll+v6 "" "0 106 0 1"
class "link-local of RoCE v2 before IPv4 of v1" link=eth,gids=v41+ll "" "0 106 0 1"
class "RoCE v1 only" link=eth,gids=ll1+v41 "" "0 0 0 1"
class "GID by number, a class" link=eth,gids=zero+ll+v4 "--mca btl_umr_gid_index 1 --mca btl_umr_traffic_class 32 --mca btl_umr_service_level 5" "5 32 0 1"
class "the first full member" pkeys=0x7fff+0xffff+0x8005 "" "0 0 1 0"
class "a partition" pkeys=0x7fff+0xffff+0x8005 "--mca btl_umr_pkey 5 --mca btl_umr_service_level 3" "3 0 2 0"
finish
