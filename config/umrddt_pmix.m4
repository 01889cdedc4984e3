dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_PMIX
dnl OpenPMIx's headers: the headers of Open MPI 5.0 and 6.0 include them; 4.1's do not.
dnl Sets and substitutes PMIX_CPPFLAGS; sets umrddt_pmix_summary.
AC_DEFUN([UMRDDT_CHECK_PMIX], [
    AC_ARG_WITH([pmix],
        [AS_HELP_STRING([--with-pmix=DIR],
            [the OpenPMIx of the Open MPI: its prefix, with include/pmix.h below it
             (default: Open MPI's own, or pkg-config's)])])
    PMIX_CPPFLAGS=
    umrddt_pmix_summary=
    umrddt_pmix_candidates=
    AS_CASE(["$with_pmix"],
        [no], [],
        [yes|''],
            [PKG_CHECK_EXISTS([pmix],
                [umrddt_pmix_summary=`$PKG_CONFIG --modversion pmix`
                 umrddt_pmix_candidates=`$PKG_CONFIG --variable=includedir pmix`])
             umrddt_pmix_candidates="$umrddt_pmix_candidates $umrddt_incdir $umrddt_incdir/openmpi `dirname "$OMPI_LIBDIR"`/../pmix2/include `dirname "$OMPI_LIBDIR"`/pmix2/include $OMPI_LIBDIR/pmix2/include /usr/include"],
        [umrddt_pmix_candidates="$with_pmix/include"])
    AC_MSG_CHECKING([for OpenPMIx's headers])
    umrddt_pmix_dir=
    for umrddt_dir in $umrddt_pmix_candidates; do
        AS_IF([test -z "$umrddt_pmix_dir" && test -r "$umrddt_dir/pmix.h"], [umrddt_pmix_dir="$umrddt_dir"])
    done
    AC_MSG_RESULT([${umrddt_pmix_dir:-no}])
    AS_IF([test -n "$umrddt_pmix_dir"],
          [AS_IF([test "$umrddt_pmix_dir" != /usr/include], [PMIX_CPPFLAGS="$umrddt_i$umrddt_pmix_dir"])
           umrddt_pmix_summary="${umrddt_pmix_summary:-yes} ($umrddt_pmix_dir)"],
          [AS_IF([test "$OMPI_SERIES" != 4.1],
                 [AC_MSG_ERROR([OpenPMIx's headers (pmix.h), which the devel headers of Open MPI $OMPI_SERIES include, were not found: install them (Debian and Ubuntu: apt-get install libpmix-dev), or name their prefix with --with-pmix=DIR.])])
           umrddt_pmix_summary="headers not found (Open MPI 4.1 does not need them)"])

    AS_IF([test "$OMPI_SERIES" != 4.1],
          [AC_MSG_CHECKING([whether Open MPI's header of the modex compiles])
           umrddt_save_CPPFLAGS="$CPPFLAGS"
           CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS $PMIX_CPPFLAGS"
           AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/mca/pmix/pmix-internal.h"
]], [[return PMIX_GLOBAL;]])],
               [AC_MSG_RESULT([yes])],
               [AC_MSG_RESULT([no])
                AC_MSG_ERROR([Open MPI's opal/mca/pmix/pmix-internal.h does not compile with OpenPMIx's headers in $umrddt_pmix_dir: name the OpenPMIx that this Open MPI was built with, --with-pmix=DIR (config.log has the compiler's words).])])
           dnl Its inline functions call PMIx. The library is in every process of this Open MPI anyway; it is
           dnl named here so that the linker can report undefined symbols.
           umrddt_pmix_libs="-L`dirname "$umrddt_pmix_dir"`/lib -lpmix"
           AS_CASE(["$with_pmix"],
               [yes|''], [PKG_CHECK_EXISTS([pmix], [umrddt_pmix_libs=`$PKG_CONFIG --libs pmix`])])
           UMRDDT_PMIX_WITHOUT_RPATH
           AC_MSG_CHECKING([for OpenPMIx's library])
           umrddt_save_LDFLAGS="$LDFLAGS"
           umrddt_save_LIBS="$LIBS"
           LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
           LIBS="$OMPI_COMPONENT_LIBS $umrddt_pmix_libs $LIBS"
           AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/mca/pmix/pmix-internal.h"
]], [[return PMIx_Put(PMIX_GLOBAL, "umrddt", (pmix_value_t *) 0);]])],
               [AC_MSG_RESULT([$umrddt_pmix_libs])
                OMPI_COMPONENT_LIBS="$OMPI_COMPONENT_LIBS $umrddt_pmix_libs"],
               [AC_MSG_RESULT([no])
                OMPI_LDFLAGS=`echo "$OMPI_LDFLAGS" | $SED 's/ -Wl,-z,defs//'`])
           LDFLAGS="$umrddt_save_LDFLAGS"
           LIBS="$umrddt_save_LIBS"
           CPPFLAGS="$umrddt_save_CPPFLAGS"])
    AC_SUBST([PMIX_CPPFLAGS])
])

dnl UMRDDT_PMIX_WITHOUT_RPATH
dnl Debian's pkg-config names a search path for a library that is found without: packages must not have it in their
dnl files. It stays where it is needed, and for libraries that are not the distribution's. Changes umrddt_pmix_libs.
AC_DEFUN([UMRDDT_PMIX_WITHOUT_RPATH], [
    umrddt_pmix_plain=`echo "$umrddt_pmix_libs" | $SED 's|-Wl,-rpath[[ ,]]\(-Wl,\)*/usr/lib[[^ ]]* *||g'`
    AS_IF([test "x$umrddt_pmix_plain" != "x$umrddt_pmix_libs"],
          [AC_MSG_CHECKING([whether OpenPMIx's library is found without a search path])
           umrddt_save_CPPFLAGS="$CPPFLAGS"
           umrddt_save_LIBS="$LIBS"
           umrddt_save_path="$LD_LIBRARY_PATH"
           CPPFLAGS="$CPPFLAGS $PMIX_CPPFLAGS"
           LIBS="$umrddt_pmix_plain $LIBS"
           AS_UNSET([LD_LIBRARY_PATH])
           AC_RUN_IFELSE([AC_LANG_PROGRAM([[
#include <pmix.h>
]], [[return NULL == PMIx_Get_version();]])],
               [AC_MSG_RESULT([yes])
                umrddt_pmix_libs="$umrddt_pmix_plain"],
               [AC_MSG_RESULT([no])],
               [AC_MSG_RESULT([not looked at when cross-compiling])])
           AS_IF([test -n "$umrddt_save_path"],
                 [LD_LIBRARY_PATH="$umrddt_save_path"
                  export LD_LIBRARY_PATH])
           CPPFLAGS="$umrddt_save_CPPFLAGS"
           LIBS="$umrddt_save_LIBS"])
])
