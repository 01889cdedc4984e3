dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_HWLOC
dnl The library of the hwloc, 2.0 or newer, whose header Open MPI's own headers include. An hwloc inside Open MPI's library
dnl needs none. Only btl/umr uses it: call after UMRDDT_CHECK_VERBS.
dnl Sets and substitutes UMRDDT_HWLOC_LIBS.
AC_DEFUN([UMRDDT_CHECK_HWLOC], [
    UMRDDT_HWLOC_LIBS=
    umrddt_save_CPPFLAGS="$CPPFLAGS"
    umrddt_save_LDFLAGS="$LDFLAGS"
    umrddt_save_LIBS="$LIBS"
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS $PMIX_CPPFLAGS"
    LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
    umrddt_hwloc=no
    AC_MSG_CHECKING([for the library of Open MPI's hwloc])
    for umrddt_lib in '' -lhwloc; do
        AS_IF([test "$umrddt_hwloc" = no],
              [LIBS="$OMPI_COMPONENT_LIBS $umrddt_lib $umrddt_save_LIBS"
               AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/mca/hwloc/hwloc-internal.h"
]], [[
    struct hwloc_distances_s *distances = 0;
    unsigned int count = 0;

    return hwloc_distances_get_by_type(opal_hwloc_topology, HWLOC_OBJ_NUMANODE, &count, &distances, 0, 0);]])],
                   [umrddt_hwloc="${umrddt_lib:-Open MPI's}"
                    UMRDDT_HWLOC_LIBS=$umrddt_lib])])
    done
    AC_MSG_RESULT([$umrddt_hwloc])
    AS_IF([test "$umrddt_hwloc" = no && test "$umrddt_have_verbs" = yes],
          [AC_MSG_ERROR([a program with Open MPI's hwloc does not link, neither with Open MPI's libraries alone nor with -lhwloc (hwloc 2.0 or newer is needed; Debian and Ubuntu: apt-get install libhwloc-dev; config.log has the compiler's words).])])
    CPPFLAGS="$umrddt_save_CPPFLAGS"
    LDFLAGS="$umrddt_save_LDFLAGS"
    LIBS="$umrddt_save_LIBS"
    AC_SUBST([UMRDDT_HWLOC_LIBS])
])
