dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_ACCELERATOR
dnl Whether this Open MPI has the framework that accelerator/cuda is for, with the functions that it has: 5.0 does.
dnl Sets umrddt_accelerator_summary; conditional UMRDDT_HAVE_ACCELERATOR.
AC_DEFUN([UMRDDT_CHECK_ACCELERATOR], [
    umrddt_accelerator=no
    AC_MSG_CHECKING([for the accelerator framework of Open MPI])
    AS_IF([test "$OMPI_SERIES" != 5.0],
          [umrddt_accelerator_summary="off: Open MPI $OMPI_SERIES has no accelerator framework (5.0 has)"],
          [test ! -r "$umrddt_incdir/openmpi/opal/mca/accelerator/accelerator.h"],
          [umrddt_accelerator_summary="off: the devel headers lack opal/mca/accelerator/accelerator.h"],
          [umrddt_save_CPPFLAGS="$CPPFLAGS"
           CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
           AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/mca/accelerator/accelerator.h"
_Static_assert(17 * sizeof(void *) == sizeof(opal_accelerator_base_module_t), "functions");
]], [[return NULL == opal_accelerator.get_buffer_id;]])],
               [umrddt_accelerator=yes
                umrddt_accelerator_summary="on"],
               [umrddt_accelerator_summary="off: the accelerator framework of this Open MPI has other functions (config.log)"])
           CPPFLAGS="$umrddt_save_CPPFLAGS"])
    AC_MSG_RESULT([$umrddt_accelerator])
    AM_CONDITIONAL([UMRDDT_HAVE_ACCELERATOR], [test $umrddt_accelerator = yes])
])
