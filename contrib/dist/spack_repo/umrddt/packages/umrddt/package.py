# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Spack's recipe for umrddt. The source is the git repository that this file is in."""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Umrddt(AutotoolsPackage):
    """Components for Open MPI that send MPI derived datatypes without packing: by UMR mkeys of
    ConnectX HCAs, by CUDA IPC, or packed by GPUs."""

    git = "file://" + os.path.realpath(
        os.path.join(os.path.dirname(os.path.realpath(__file__)), *[os.pardir] * 6)
    )
    license("BSD-3-Clause")

    version("main", branch="main")

    variant(
        "cuda",
        default=False,
        description="Compile the kernels for GPUs (the driver is found at run time in any case)",
    )

    depends_on("c", type="build")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.15:", type="build")
    depends_on("libtool@2.4.6:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("perl", type="build")
    depends_on("python@3.7:", type="build")
    # This repository's Open MPI installs the devel headers. That of Spack does not.
    depends_on("openmpi@4.1,5.0")
    depends_on("pmix", when="^openmpi@5.0")
    depends_on("rdma-core@31:")
    depends_on("cuda", when="+cuda")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.pl")()

    def configure_args(self):
        spec = self.spec
        args = [
            "--with-ompi=" + spec["openmpi"].prefix,
            "--with-verbs=" + spec["rdma-core"].prefix,
            "--with-componentdir=" + join_path(self.prefix.lib, "openmpi"),
            "--without-cmocka",
        ]
        if spec.satisfies("^pmix"):
            args.append("--with-pmix=" + spec["pmix"].prefix)
        args.append("--with-cuda=" + (spec["cuda"].prefix if spec.satisfies("+cuda") else "no"))
        return args

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        # The variable replaces Open MPI's default, so it also names Open MPI's own directory. That
        # is not always below prefix.lib: Debian's, used as an external package, is not.
        ompi_info = Executable(join_path(self.spec["openmpi"].prefix.bin, "ompi_info"))
        own = ompi_info("--path", "pkglibdir", "--parsable", output=str).strip().rpartition(":")[2]
        env.set(
            "OMPI_MCA_mca_base_component_path",
            ":".join([join_path(self.prefix.lib, "openmpi"), own]),
        )
        if self.spec.satisfies("^openmpi@5.0"):
            env.set(
                "PMIX_MCA_mca_base_component_path", join_path(self.spec["pmix"].prefix.lib, "pmix")
            )
