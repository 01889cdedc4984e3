dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_CUDA(OPTION)
dnl nvcc, which compiles the kernels for GPUs. Without it they are compiled for the host only, for tests.
dnl Of the CUDA Toolkit only the header of NVTX is used besides, for ranges in profilers, if there is one: in DIR, or in
dnl the compiler's path or /usr/local/cuda. --with-OPTION selects nvcc (in an Open MPI, --with-cuda is taken).
dnl
dnl The kernels are compiled to PTX for the oldest of the architectures below that this nvcc supports, from
dnl which it makes code for it and for the other supported ones. The PTX is for later architectures.
dnl Sets and substitutes NVCC, UMRDDT_NVCC_CODES, NVTX_CPPFLAGS; the conditional UMRDDT_HAVE_NVCC; umrddt_cuda_summary,
dnl umrddt_nvtx_summary.
AC_DEFUN([UMRDDT_CHECK_CUDA], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=DIR],
            [compile the kernels for GPUs by the nvcc of the CUDA Toolkit in DIR; yes: by the one on PATH or in /usr/local/cuda (default: no)])],
        [umrddt_cuda="$withval"], [umrddt_cuda=])
    NVCC=
    UMRDDT_NVCC_CODES=
    umrddt_cuda_summary="off (--with-$1=DIR compiles the kernels for GPUs)"
    AS_CASE(["$umrddt_cuda"],
        [no|''], [],
        [yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])],
        [AC_PATH_PROG([NVCC], [nvcc], [], [$umrddt_cuda/bin])])
    AS_CASE(["$umrddt_cuda"],
        [no|''], [],
        [AS_IF([test -z "$NVCC"],
               [AC_MSG_ERROR([--with-$1=$umrddt_cuda: no nvcc was found there (CUDA Toolkit 11.7 or newer is needed).])])
         AC_MSG_CHECKING([what $NVCC compiles for])
         umrddt_nvcc_real=`"$NVCC" --list-gpu-code 2>/dev/null | tr '\n' ' '`
         umrddt_nvcc_first=
         umrddt_nvcc_list=
         for umrddt_arch in 70 75 80 90 100; do
             AS_CASE([" $umrddt_nvcc_real "],
                 [*" sm_$umrddt_arch "*],
                 [AS_IF([test -z "$umrddt_nvcc_first"], [umrddt_nvcc_first=$umrddt_arch])
                  AS_IF([test $umrddt_arch != 75 || test $umrddt_nvcc_first = 75],
                        [umrddt_nvcc_list="${umrddt_nvcc_list}sm_$umrddt_arch,"])])
         done
         AC_MSG_RESULT([${umrddt_nvcc_list}compute_$umrddt_nvcc_first])
         AS_IF([test -z "$umrddt_nvcc_first"],
               [AC_MSG_ERROR([--with-$1=$umrddt_cuda: $NVCC --list-gpu-code names none of sm_70, 75, 80, 90, 100.])])
         UMRDDT_NVCC_CODES="-gencode 'arch=compute_$umrddt_nvcc_first,code=[[${umrddt_nvcc_list}compute_$umrddt_nvcc_first]]'"
         umrddt_cuda_summary="nvcc `"$NVCC" --version | sed -n 's/.*release \(.*\),.*/\1/p'` ($NVCC), ${umrddt_nvcc_list}compute_$umrddt_nvcc_first"])
    AC_MSG_CHECKING([for nvtx3/nvToolsExt.h])
    NVTX_CPPFLAGS=
    umrddt_nvtx_summary="no header nvtx3/nvToolsExt.h of the CUDA Toolkit: no ranges in profilers"
    AS_CASE(["$umrddt_cuda"],
        [no|yes|''], [umrddt_nvtx_dirs="none /usr/local/cuda/include"],
        [umrddt_nvtx_dirs="$umrddt_cuda/include none"])
    umrddt_save_CPPFLAGS="$CPPFLAGS"
    umrddt_save_LIBS="$LIBS"
    LIBS="$LIBS -ldl" # the header calls dlopen, which the C library has only since glibc 2.34
    for umrddt_dir in $umrddt_nvtx_dirs; do
        AS_IF([test -n "$NVTX_CPPFLAGS"], [continue])
        AS_CASE(["$umrddt_dir"], [none], [umrddt_nvtx=], [umrddt_nvtx="-idirafter $umrddt_dir"])
        CPPFLAGS="$umrddt_save_CPPFLAGS $umrddt_nvtx"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <nvtx3/nvToolsExt.h>
]], [[return NULL != nvtxDomainCreateA("conftest");]])],
            [NVTX_CPPFLAGS="-DUMRDDT_HAVE_NVTX=1 $umrddt_nvtx"
             umrddt_nvtx_summary="yes"])
    done
    CPPFLAGS="$umrddt_save_CPPFLAGS"
    LIBS="$umrddt_save_LIBS"
    AC_MSG_RESULT([$umrddt_nvtx_summary])
    AC_SUBST([NVTX_CPPFLAGS])
    AM_CONDITIONAL([UMRDDT_HAVE_NVCC], [test -n "$NVCC"])
    AC_SUBST([NVCC])
    AC_SUBST([UMRDDT_NVCC_CODES])
])
