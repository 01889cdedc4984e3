dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_OMPI_SOURCE
dnl --with-ompi-source: makes the devel headers of the installed Open MPI, and sets umrddt_incdir to their directory.
AC_DEFUN([UMRDDT_OMPI_SOURCE], [
    AC_ARG_WITH([ompi-source],
        [AS_HELP_STRING([--with-ompi-source=TARBALL],
            [make the devel headers of that Open MPI, if it has none, from the tarball (or the source
             tree) of its release])])
    AS_CASE(["$with_ompi_source"],
        [no|''], [],
        [yes], [AC_MSG_ERROR([--with-ompi-source needs the tarball or the source tree of Open MPI $OMPI_RELEASE.])],
        [AS_IF([test -n "$with_devel_headers" && test "x$with_devel_headers" != xno],
               [AC_MSG_ERROR([--with-ompi-source and --with-devel-headers exclude each other.])])
         AC_MSG_NOTICE([making the devel headers of Open MPI $OMPI_RELEASE from $with_ompi_source])
         umrddt_incdir="`pwd`/ompi-headers"
         umrddt_made="$OMPI_RELEASE $OMPI_INFO $with_ompi_source"
         AS_IF([test "x`cat "$umrddt_incdir/made" 2>/dev/null`" != "x$umrddt_made"],
               [CC="$CC" "$srcdir/contrib/ompi-headers" --ompi-info "$OMPI_INFO" "$with_ompi_source" "$umrddt_incdir" ||
                    AC_MSG_ERROR([contrib/ompi-headers could not make the devel headers; its messages are above.])
                echo "$umrddt_made" >"$umrddt_incdir/made"])])
])

dnl UMRDDT_OMPI_INCLUDES
dnl Appends the include directories of the hwloc and the libevent that an Open MPI 4.1 may contain to OMPI_CPPFLAGS, if
dnl its headers include them.
AC_DEFUN([UMRDDT_OMPI_INCLUDES], [
    for umrddt_dir in "$umrddt_incdir"/openmpi/opal/mca/hwloc/hwloc*/hwloc/include \
                      "$umrddt_incdir"/openmpi/opal/mca/event/libevent*/libevent \
                      "$umrddt_incdir"/openmpi/opal/mca/event/libevent*/libevent/include; do
        umrddt_name=`echo "$umrddt_dir" | $SED 's|.*/opal/\(mca/[[^/]]*/[[^/]]*\)/.*|\1|'`
        AS_IF([test -d "$umrddt_dir" && $GREP "HEADER .opal/$umrddt_name/" "$umrddt_incdir/openmpi/opal_config.h" >/dev/null],
              [OMPI_CPPFLAGS="$OMPI_CPPFLAGS $umrddt_i$umrddt_dir"])
    done
])

dnl UMRDDT_CHECK_LAYOUT
dnl Ends if the devel headers describe other structures than the library has (config/ompi_layout.c): headers of the same
dnl release, but of a build with debugging, or with CUDA.
AC_DEFUN([UMRDDT_CHECK_LAYOUT], [
    umrddt_save_CPPFLAGS="$CPPFLAGS"
    umrddt_save_LDFLAGS="$LDFLAGS"
    umrddt_save_LIBS="$LIBS"
    CPPFLAGS="$CPPFLAGS -I$srcdir/config $OMPI_CPPFLAGS $PMIX_CPPFLAGS"
    LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
    LIBS="$OMPI_COMPONENT_LIBS $LIBS -ldl"
    UMRDDT_PKGLIBDIR="$OMPI_PKGLIBDIR"
    export UMRDDT_PKGLIBDIR
    rm -f conftest.layout
    AC_MSG_CHECKING([whether the devel headers describe the library])
    AC_RUN_IFELSE([AC_LANG_SOURCE([[#include "ompi_layout.c"]])],
        [umrddt_layout=`cat conftest.layout`
         AC_MSG_RESULT([yes ($umrddt_layout)])],
        [AS_IF([test -s conftest.layout],
               [AC_MSG_RESULT([no])
                $SED 's/^/configure: /' conftest.layout >&2
                AC_MSG_ERROR([the devel headers in $umrddt_incdir/openmpi are of Open MPI $OMPI_RELEASE, but of another build than the library (with other options, such as --enable-debug or --with-cuda): the structures that are named above differ. Name the headers of this build with --with-devel-headers=DIR, or make them with --with-ompi-source=TARBALL.])],
               [AC_MSG_RESULT([unknown])
                AC_MSG_WARN([the devel headers could not be compared with the library (see config.log).])])],
        [AC_MSG_RESULT([not looked at when cross-compiling])])
    rm -f conftest.layout
    CPPFLAGS="$umrddt_save_CPPFLAGS"
    LDFLAGS="$umrddt_save_LDFLAGS"
    LIBS="$umrddt_save_LIBS"
])
