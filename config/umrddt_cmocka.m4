dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_CMOCKA
dnl cmocka, for the unit tests of "make check". Substitutes CMOCKA_CFLAGS and CMOCKA_LIBS; sets the
dnl conditional UMRDDT_HAVE_CMOCKA and umrddt_cmocka_summary.
AC_DEFUN([UMRDDT_CHECK_CMOCKA], [
    umrddt_cmocka_summary=
    AC_ARG_WITH([cmocka],
        [AS_HELP_STRING([--without-cmocka], [do not build the unit tests, which need cmocka])])
    umrddt_have_cmocka=no
    AS_IF([test "x$with_cmocka" = xno],
          [umrddt_cmocka_summary="off (--without-cmocka)"],
          [PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.0],
               [umrddt_have_cmocka=yes
                umrddt_cmocka_summary="on (cmocka `$PKG_CONFIG --modversion cmocka`)"],
               [umrddt_cmocka_summary="off: cmocka was not found (Debian and Ubuntu: apt-get install libcmocka-dev)"
                AS_IF([test "x$with_cmocka" = xyes],
                      [AC_MSG_ERROR([--with-cmocka: cmocka was not found (Debian and Ubuntu: apt-get install libcmocka-dev).])])])])
    AM_CONDITIONAL([UMRDDT_HAVE_CMOCKA], [test $umrddt_have_cmocka = yes])
])
