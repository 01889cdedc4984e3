dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_SUMMARY
dnl The last words of configure: what was found, what is off and why.
AC_DEFUN([UMRDDT_SUMMARY], [
    AS_IF([test $umrddt_have_verbs = yes],
          [umrddt_btl=on
           umrddt_sim=on],
          [umrddt_btl="off: it needs libibverbs and libmlx5 (pml/umrddt will pass every message to the base PML)"
           umrddt_sim="off: it needs libibverbs and libmlx5"])
    umrddt_prefix="$prefix"
    AS_IF([test "x$umrddt_prefix" = xNONE], [umrddt_prefix="$ac_default_prefix"])
    dnl componentdir may name other variables of make.
    umrddt_components=`prefix="$umrddt_prefix"
        test "x$exec_prefix" = xNONE && exec_prefix="$prefix"
        for umrddt_pass in 1 2 3; do eval "componentdir=\\"$componentdir\\""; done
        echo "$componentdir"`
    cat <<_UMRDDT_EOF

umrddt $PACKAGE_VERSION

 Found
  Open MPI            $OMPI_RELEASE ($OMPI_INFO)
  Devel headers       $umrddt_headers ($umrddt_incdir/openmpi)
  OpenPMIx            $umrddt_pmix_summary
  libibverbs, mlx5dv  $umrddt_verbs_summary
  NVTX                $umrddt_nvtx_summary
 Built
  pml/umrddt          on
  btl/umr             $umrddt_btl
  accelerator/cuda    $umrddt_accelerator_summary
  GPU kernels         $umrddt_cuda_summary
  umrddt_sim          $umrddt_sim
  Unit tests          $umrddt_cmocka_summary
 Installed
  Components          $umrddt_components
  Everything else     $umrddt_prefix

_UMRDDT_EOF
])
