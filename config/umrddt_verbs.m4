dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_VERBS
dnl libibverbs and libmlx5 with the calls and flags that btl/umr uses (rdma-core 36 or newer). Without them btl/umr and the
dnl software ConnectX are off; pml/umrddt builds, and passes everything to the base PML. Tags of mkeys can be updated
dnl with 43 or newer; VERBS_CPPFLAGS says if the headers are older.
dnl Sets and substitutes VERBS_CPPFLAGS, VERBS_LDFLAGS, VERBS_LIBS, UMRDDT_NODELETE; the conditional UMRDDT_HAVE_VERBS;
dnl umrddt_verbs_summary.
AC_DEFUN([UMRDDT_CHECK_VERBS], [
    AC_ARG_WITH([verbs],
        [AS_HELP_STRING([--with-verbs=DIR],
            [libibverbs and libmlx5: their prefix; or no (default: the system's)])])
    VERBS_CPPFLAGS=
    VERBS_LDFLAGS=
    VERBS_LIBS="-lmlx5 -libverbs"
    umrddt_have_verbs=no
    umrddt_verbs_summary=
    AS_CASE(["$with_verbs"],
        [yes|no|''], [],
        [VERBS_CPPFLAGS="-I$with_verbs/include"
         umrddt_libdir=
         for umrddt_dir in lib64 lib/`$CC -print-multiarch 2>/dev/null` lib; do
             AS_IF([test -z "$umrddt_libdir" && ls "$with_verbs/$umrddt_dir"/libmlx5.* >/dev/null 2>&1],
                   [umrddt_libdir="$with_verbs/$umrddt_dir"])
         done
         AS_IF([test -z "$umrddt_libdir"],
               [AC_MSG_ERROR([--with-verbs=$with_verbs: no libmlx5 was found below it.])])
         VERBS_LDFLAGS="-L$umrddt_libdir -Wl,-rpath,$umrddt_libdir"])
    AS_IF([test "x$with_verbs" = xno],
          [umrddt_verbs_summary="off (--without-verbs)"],
          [umrddt_save_CPPFLAGS="$CPPFLAGS"
           umrddt_save_LDFLAGS="$LDFLAGS"
           umrddt_save_LIBS="$LIBS"
           CPPFLAGS="$CPPFLAGS $VERBS_CPPFLAGS"
           LDFLAGS="$LDFLAGS $VERBS_LDFLAGS"
           LIBS="$VERBS_LIBS $LIBS"
           AC_MSG_CHECKING([for libibverbs and libmlx5 with UMR mkeys])
           AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>
]], [[
    struct mlx5dv_mkey_init_attr init = {.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT};
    struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&init);
    struct mlx5dv_qp_ex *qp = mlx5dv_qp_ex_from_ibv_qp_ex((struct ibv_qp_ex *) 0);
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct mlx5dv_mr_interleaved interleaved = {0};
    struct ibv_sge sge = {0};
    struct mlx5dv_qp_init_attr attr = {.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED
                                                         | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_RAW_WQE,
                                       .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
                                       .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS
                                                    | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS};
    struct mlx5dv_context_attr context = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    mlx5dv_create_qp(mlx5dv_open_device((struct ibv_device *) 0, &context), (struct ibv_qp_init_attr_ex *) 0, &attr);
    mlx5dv_devx_general_cmd((struct ibv_context *) 0, &attr, sizeof(attr), &attr, sizeof(attr));
    mlx5dv_wr_mkey_configure(qp, mkey, 3, &conf);
    mlx5dv_wr_set_mkey_access_flags(qp, IBV_ACCESS_LOCAL_WRITE);
    mlx5dv_wr_set_mkey_layout_list(qp, 1, &sge);
    mlx5dv_wr_set_mkey_layout_interleaved(qp, 1, 1, &interleaved);
    mlx5dv_wr_mr_list(qp, mkey, 0, 1, &sge);
    mlx5dv_wr_raw_wqe(qp, &conf);
    return mlx5dv_is_supported((struct ibv_device *) 0) ? 0 : mlx5dv_destroy_mkey(mkey);
]])],
               [umrddt_have_verbs=yes
                umrddt_verbs_summary="yes"
                PKG_CHECK_EXISTS([libmlx5],
                    [umrddt_verbs_summary="yes (libibverbs `$PKG_CONFIG --modversion libibverbs`, libmlx5 `$PKG_CONFIG --modversion libmlx5`)"])],
               [umrddt_verbs_summary="off: no libibverbs and libmlx5 of rdma-core 36 or newer (Debian and Ubuntu: apt-get install libibverbs-dev; Fedora, RHEL, SUSE: rdma-core-devel)"])
           AC_MSG_RESULT([$umrddt_have_verbs])
           AS_IF([test $umrddt_have_verbs = yes],
                 [AC_MSG_CHECKING([whether tags of mkeys can be updated])
                  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <infiniband/mlx5dv.h>
]], [[return MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;]])],
                      [AC_MSG_RESULT([yes])],
                      [AC_MSG_RESULT([no])
                       VERBS_CPPFLAGS="$VERBS_CPPFLAGS -DUMRDDT_NO_UPDATE_TAG=1"
                       umrddt_verbs_summary="$umrddt_verbs_summary; tags of mkeys are not updated, which needs rdma-core 43"])])
           CPPFLAGS="$umrddt_save_CPPFLAGS"
           LDFLAGS="$umrddt_save_LDFLAGS"
           LIBS="$umrddt_save_LIBS"
           AS_IF([test $umrddt_have_verbs = no && test -n "$with_verbs"],
                 [AC_MSG_ERROR([--with-verbs=$with_verbs: a program with mlx5dv_create_mkey, mlx5dv_wr_mkey_configure and mlx5dv_wr_raw_wqe does not link (rdma-core 36 or newer is needed; Debian and Ubuntu: apt-get install libibverbs-dev; config.log has the compiler's words).])])])
    dnl libibverbs keeps addresses that libmlx5 registers at load, and maybe only we hold libmlx5. A component that uses
    dnl it must never be unloaded.
    UMRDDT_NODELETE=
    umrddt_save_LDFLAGS="$LDFLAGS"
    LDFLAGS="$LDFLAGS -Wl,-z,nodelete"
    AC_MSG_CHECKING([whether the linker takes -z nodelete])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])
         UMRDDT_NODELETE="-Wl,-z,nodelete"],
        [AC_MSG_RESULT([no])])
    LDFLAGS="$umrddt_save_LDFLAGS"
    AM_CONDITIONAL([UMRDDT_HAVE_VERBS], [test $umrddt_have_verbs = yes])
    AC_SUBST([VERBS_CPPFLAGS])
    AC_SUBST([VERBS_LDFLAGS])
    AC_SUBST([VERBS_LIBS])
    AC_SUBST([UMRDDT_NODELETE])
])
