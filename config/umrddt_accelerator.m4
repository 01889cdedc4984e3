dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_ACCELERATOR
dnl Whether this Open MPI has the framework that accelerator/cuda is for, with the functions that it has: 5.0 and 6.0 do.
dnl Sets umrddt_accelerator_summary; conditional UMRDDT_HAVE_ACCELERATOR.
AC_DEFUN([UMRDDT_CHECK_ACCELERATOR], [
    umrddt_accelerator=no
    AC_MSG_CHECKING([for the accelerator framework of Open MPI])
    AS_IF([test "$OMPI_SERIES" = 4.1],
          [umrddt_accelerator_summary="off: Open MPI $OMPI_SERIES has no accelerator framework (5.0 and 6.0 have)"],
          [test ! -r "$umrddt_incdir/openmpi/opal/mca/accelerator/accelerator.h"],
          [umrddt_accelerator_summary="off: the devel headers lack opal/mca/accelerator/accelerator.h"],
          [umrddt_save_CPPFLAGS="$CPPFLAGS"
           CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS $PMIX_CPPFLAGS"
           umrddt_functions=17
           AS_IF([test "$OMPI_SERIES" = 6.0], [umrddt_functions=33])
           AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/mca/accelerator/accelerator.h"
_Static_assert($umrddt_functions * sizeof(void *) == sizeof(opal_accelerator_base_module_t), "functions");
]], [[return NULL == opal_accelerator.get_buffer_id;]])],
               [umrddt_accelerator=yes
                umrddt_accelerator_summary="on"],
               [umrddt_accelerator_summary="off: the accelerator framework of this Open MPI has other functions (config.log)"])
           CPPFLAGS="$umrddt_save_CPPFLAGS"])
    AC_MSG_RESULT([$umrddt_accelerator])
    AM_CONDITIONAL([UMRDDT_HAVE_ACCELERATOR], [test $umrddt_accelerator = yes])
])
