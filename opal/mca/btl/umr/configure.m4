# -*- shell-script -*-
dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl MCA_opal_btl_umr_CONFIG([action-if-can-compile], [action-if-cant-compile])
AC_DEFUN([MCA_opal_btl_umr_CONFIG], [
    AC_CONFIG_FILES([opal/mca/btl/umr/Makefile])
    UMRDDT_CHECK_VERBS
    AS_IF([test "$umrddt_have_verbs" = yes && test "$umrddt_release_good" = yes],
          [btl_umr_WRAPPER_EXTRA_LDFLAGS="$VERBS_LDFLAGS"
           btl_umr_WRAPPER_EXTRA_LIBS="$VERBS_LIBS"
           $1],
          [$2])
])
