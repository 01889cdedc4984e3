# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Spack's own Open MPI with devel headers, which umrddt's components are compiled with."""

from spack_repo.builtin.packages.openmpi.package import Openmpi as BuiltinOpenmpi


class Openmpi(BuiltinOpenmpi):
    __doc__ = BuiltinOpenmpi.__doc__

    def configure_args(self):
        return super().configure_args() + ["--with-devel-headers"]
