dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_CUDA(OPTION)
dnl The kernels for GPUs: compiled by nvcc, if there is one. Else the PTX of a release tarball, which the driver compiles
dnl (umrddt_gpu_ptx). Else they are compiled for the host only, for tests.
dnl Of the CUDA Toolkit only the header of NVTX is used besides, for ranges in profilers, if there is one: in DIR, or in
dnl the compiler's path or /usr/local/cuda. --with-OPTION selects nvcc (in an Open MPI, --with-cuda is taken).
dnl
dnl The kernels are compiled to PTX for the oldest of the architectures below that this nvcc supports, from
dnl which it makes code for it and for the other supported ones. The PTX is for later architectures.
dnl Sets and substitutes NVCC, UMRDDT_DIST_NVCC (for make dist, also with --with-OPTION=no), UMRDDT_NVCC_CODES, NVTX_CPPFLAGS,
dnl UMRDDT_BUILT_KERNELS (for umrddt_info: how they are made, or nothing), UMRDDT_KERNELS_FIRST (the oldest architecture that
dnl they have code for, or 0); the conditionals UMRDDT_HAVE_NVCC, UMRDDT_HAVE_PTX; umrddt_cuda_summary, umrddt_nvtx_summary.
AC_DEFUN([UMRDDT_CHECK_CUDA], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=DIR],
            [compile the kernels for GPUs by the nvcc of the CUDA Toolkit in DIR; yes: by the one on PATH, in $CUDA_HOME or in /usr/local/cuda; ptx: build in the PTX of the release tarball, which the driver compiles; no: no kernels for GPUs (default: yes if there is an nvcc that works, else ptx if the tarball has it)])],
        [umrddt_cuda="$withval"], [umrddt_cuda=])
    NVCC=
    UMRDDT_NVCC_CODES=
    UMRDDT_BUILT_KERNELS=
    UMRDDT_KERNELS_FIRST=0
    umrddt_have_ptx=no
    umrddt_cuda_summary="off (--with-$1=no): one driver copy per block of a GPU buffer"
    AS_CASE(["$umrddt_cuda"],
        [no|ptx], [],
        [yes|''], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:${CUDA_HOME:+$CUDA_HOME/bin:}/usr/local/cuda/bin])],
        [AC_PATH_PROG([NVCC], [nvcc], [], [$umrddt_cuda/bin])])
    umrddt_nvcc_bad=
    AS_IF([test -n "$NVCC"], [UMRDDT_TRY_NVCC],
          [umrddt_nvcc_bad="no nvcc was found there (CUDA Toolkit 11.7 or newer is needed)"])
    AS_IF([test "x$umrddt_cuda" != xno && test -n "$umrddt_nvcc_bad"],
          [AS_CASE(["$umrddt_cuda"], [ptx|''], [],
                   [AC_MSG_ERROR([--with-$1=$umrddt_cuda: $umrddt_nvcc_bad.])])
           AS_IF([test -n "$NVCC"],
                 [AC_MSG_WARN([$umrddt_nvcc_bad. It is not used. --with-$1=DIR names another CUDA Toolkit.])])
           NVCC=
           UMRDDT_BUILT_KERNELS=
           UMRDDT_KERNELS_FIRST=0
           umrddt_cuda_summary="NONE, no nvcc works here: one driver copy per block of a GPU buffer (--with-$1=DIR)"
           UMRDDT_TRY_PTX([$1])])
    UMRDDT_DIST_NVCC="$NVCC"
    AS_IF([test -z "$NVCC"],
          [AC_PATH_PROG([UMRDDT_DIST_NVCC], [nvcc], [], [$PATH:${CUDA_HOME:+$CUDA_HOME/bin:}/usr/local/cuda/bin])])
    AC_MSG_CHECKING([for nvtx3/nvToolsExt.h])
    NVTX_CPPFLAGS=
    umrddt_nvtx_summary="no header nvtx3/nvToolsExt.h of the CUDA Toolkit: no ranges in profilers"
    AS_CASE(["$umrddt_cuda"],
        [no|yes|ptx|''], [umrddt_nvtx_dirs="none /usr/local/cuda/include"],
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
    AM_CONDITIONAL([UMRDDT_HAVE_PTX], [test $umrddt_have_ptx = yes])
    AC_SUBST([NVCC])
    AC_SUBST([UMRDDT_DIST_NVCC])
    AC_SUBST([UMRDDT_NVCC_CODES])
    AC_SUBST([UMRDDT_BUILT_KERNELS])
    AC_SUBST([UMRDDT_KERNELS_FIRST])
])

dnl UMRDDT_TRY_PTX(OPTION)
dnl Without nvcc: PTX beside the sources of the kernels, if it is of these sources. It is an error if it is not and the user
dnl asked for it, else a warning.
AC_DEFUN([UMRDDT_TRY_PTX], [
    AC_MSG_CHECKING([for PTX of the GPU kernels])
    umrddt_ptx=`sh "$srcdir/opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_ptx" check`
    AS_CASE([$?],
        [0], [umrddt_have_ptx=yes
              UMRDDT_KERNELS_FIRST=`echo "$umrddt_ptx" | sed 's/.*compute_\([[0-9]]*\).*/\1/'`
              UMRDDT_BUILT_KERNELS="$umrddt_ptx (compiled by the driver at the first use)"
              umrddt_cuda_summary="$UMRDDT_BUILT_KERNELS"
              AC_MSG_RESULT([$umrddt_ptx])],
        [1], [AC_MSG_RESULT([not usable])
              AC_MSG_WARN([$umrddt_ptx. It is not used: without nvcc there are no GPU kernels. The release tarball has PTX of its sources; --with-$1=DIR names a CUDA Toolkit.])],
        [AC_MSG_RESULT([none])])
    AS_IF([test "x$umrddt_cuda" = xptx && test $umrddt_have_ptx = no],
          [AC_MSG_ERROR([--with-$1=ptx: $umrddt_ptx. Release tarballs that were made where an nvcc is have it.])])
])

dnl UMRDDT_TRY_NVCC
dnl Sets UMRDDT_NVCC_CODES and umrddt_cuda_summary for $NVCC, or umrddt_nvcc_bad to the reason why it cannot be used. A kernel
dnl is compiled, because an nvcc refuses compilers that are newer than itself.
AC_DEFUN([UMRDDT_TRY_NVCC], [
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
    AS_IF([test -z "$umrddt_nvcc_first"],
        [AC_MSG_RESULT([nothing of use])
         umrddt_nvcc_bad="$NVCC --list-gpu-code names none of sm_70, 75, 80, 90, 100"],
        [echo 'extern "C" __global__ void conftest(unsigned *to) { *to = 1; }' >conftest.cu
         UMRDDT_NVCC_CODES="-gencode 'arch=compute_$umrddt_nvcc_first,code=[[${umrddt_nvcc_list}compute_$umrddt_nvcc_first]]'"
         UMRDDT_KERNELS_FIRST=$umrddt_nvcc_first
         UMRDDT_BUILT_KERNELS="built by nvcc `"$NVCC" --version | sed -n 's/.*release \(.*\),.*/\1/p'` for ${umrddt_nvcc_list}compute_$umrddt_nvcc_first"
         umrddt_cuda_summary="$UMRDDT_BUILT_KERNELS ($NVCC)"
         AS_IF(["$NVCC" -arch=compute_$umrddt_nvcc_first -fatbin -o conftest.fatbin conftest.cu >conftest.log 2>&1 && test -s conftest.fatbin],
               [AC_MSG_RESULT([${umrddt_nvcc_list}compute_$umrddt_nvcc_first])],
               [AC_MSG_RESULT([nothing])
                cat conftest.log >&AS_MESSAGE_LOG_FD
                umrddt_nvcc_bad="$NVCC cannot compile a kernel (`head -n 1 conftest.log`; config.log has all of it)"])
         rm -f conftest.cu conftest.fatbin conftest.log])
])
