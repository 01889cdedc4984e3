#!/usr/bin/env perl
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# Makes ./configure and the Makefile.in files from their sources. Needed in a git clone only; the
# release tarball has them. Or (--graft) puts the components into an Open MPI's source tree.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);

# Tool => the package of Debian and Ubuntu that brings it, the oldest version that will do.
my @tools = (
    ["autoconf",   "autoconf",  "2.69"],
    ["automake",   "automake",  "1.15"],
    ["libtoolize", "libtool",   "2.4.6"],
    ["autoreconf", "autoconf",  undef],
    ["pkg-config", "pkg-config", "0.29"],
);

# The directories that --graft copies, without their subdirectories, to the same place.
my @grafted = (
    "ompi/mca/pml/umrddt", (map { "ompi/mca/pml/umrddt/$_" } qw(core select engine schemes match bringup)),
    "ompi/mca/coll/umrddt", "opal/mca/btl/umr", "opal/datatype/iov_cache",
    "opal/mca/common/umrddt_gpu",
    (map { "opal/mca/common/umrddt_gpu/$_" } qw(kernels driver staging engine ipc rdma)),
    "opal/mca/common/umrddt_select",
);
my @grafted_files = (
    "opal/include/umrddt_compat.h", "opal/include/umrddt_cuda.h", "opal/include/umrddt_cuda_functions.h",
    "opal/include/umrddt_collectives.h", "opal/include/umrddt_export.h", "opal/include/umrddt_gate.h",
    "opal/include/umrddt_help.h", "opal/include/umrddt_ids.h", "opal/include/umrddt_params.h", "opal/include/umrddt_synonyms.h",
    "config/umrddt_cuda.m4", "config/umrddt_verbs.m4",
);

sub usage
{
    print "Usage: ./autogen.pl [--help]\n"
      . "       ./autogen.pl --graft DIR\n\n"
      . "Makes ./configure from configure.ac and config/*.m4 (runs autoreconf). Then:\n"
      . "  ./configure && make && make check && make install\n\n"
      . "--graft DIR puts the components into the source tree of Open MPI 4.1, 5.0 or 6.0 in DIR, instead of what an\n"
      . "earlier graft has put there; nothing of Open MPI's own is changed. They are then built with it:\n"
      . "  cd DIR && ./autogen.pl --force && ./configure ... && make && make install\n";
    exit 0;
}

# Ends with an error, and always with the same exit status.
sub fail
{
    print STDERR "autogen.pl: @_\n";
    exit 1;
}

# The series, such as "5.0", of the Open MPI whose source tree is in $dir, or an end with an error.
sub series_of
{
    my ($dir) = @_;
    my %is;
    my $why = "is not the source tree of an Open MPI";
    fail("--graft $dir: there is no such directory") if (!-d $dir);
    foreach my $needed ("autogen.pl", "ompi/mca/pml", "ompi/mca/coll", "opal/mca/btl", "opal/mca/common") {
        fail("--graft $dir: $why: it has no $needed") if (!-e "$dir/$needed");
    }
    open(my $file, "<", "$dir/VERSION") or fail("--graft $dir: $why: VERSION: $!");
    while (my $line = <$file>) {
        $is{$1} = $2 if ($line =~ /^(major|minor)=(\d+)\s*$/);
    }
    close($file);
    my $series = ($is{major} // "?") . "." . ($is{minor} // "?");
    if ($series !~ /^(4\.1|5\.0|6\.0)$/) {
        fail("--graft $dir: this is Open MPI $series, and umrddt builds within 4.1, 5.0 and 6.0");
    }
    return $series;
}

sub put
{
    my ($from, $to) = @_;
    copy($from, $to) or fail("cannot write $to: $!");
}

sub graft
{
    my ($from, $dir) = @_;
    my $series = series_of($dir);

    remove_tree(map { "$dir/$_" } @grafted);
    foreach my $place (@grafted) {
        make_path("$dir/$place");
        opendir(my $entries, "$from/$place") or fail("cannot read $from/$place: $!");
        foreach my $name (sort(readdir($entries))) {
            # Sources only, without files that a build in this tree has made; with the PTX of a release tarball.
            next if ($name !~ /^(Makefile\.am|configure\.m4|owner\.txt|README\.md|help-.*\.txt|umrddt_gpu_ptx|.*\.(c|h|cu|ptx|stamp))$/);
            put("$from/$place/$name", "$dir/$place/$name");
        }
        closedir($entries);
    }
    put("$from/$_", "$dir/$_") foreach (@grafted_files);
    put("$from/config/umrddt_graft.am", "$dir/config/umrddt.am");
    # PACKAGE_VERSION is that of Open MPI there.
    chomp(my $version = qx("$from/contrib/version") || fail("contrib/version prints no version"));
    open(my $am, ">>", "$dir/config/umrddt.am") or fail("cannot write $dir/config/umrddt.am: $!");
    print $am "AM_CPPFLAGS += -DUMRDDT_VERSION=\\\"$version\\\"\n";
    close($am) or fail("cannot write $dir/config/umrddt.am: $!");
    print "autogen.pl: umrddt is in the source tree of Open MPI $series in $dir; next:\n"
      . "  cd $dir && ./autogen.pl --force && ./configure ... && make && make install\n";
    exit 0;
}

sub on_path
{
    my ($tool) = @_;
    foreach my $dir (split(/:/, $ENV{PATH} // "")) {
        return 1 if (-x "$dir/$tool" && !-d "$dir/$tool");
    }
    return 0;
}

# True if dotted version $have is at least $want.
sub at_least
{
    my ($have, $want) = @_;
    my @have = split(/\./, $have);
    my @want = split(/\./, $want);
    while (@want) {
        my $h = shift(@have) // 0;
        my $w = shift(@want);
        $h =~ s/\D.*//;
        return 1 if ($h > $w);
        return 0 if ($h < $w);
    }
    return 1;
}

my $top = dirname(abs_path($0));

while (defined(my $arg = shift(@ARGV))) {
    usage() if ($arg eq "-h" || $arg eq "--help");
    if ($arg eq "--graft") {
        fail("--graft takes one directory (see ./autogen.pl --help)") if (1 != @ARGV);
        graft($top, abs_path($ARGV[0]) // $ARGV[0]);
    }
    die "autogen.pl: unknown argument '$arg' (see ./autogen.pl --help)\n";
}

chdir($top) or die "autogen.pl: cannot enter $top: $!\n";

my (%packages, @problems);
foreach my $tool (@tools) {
    my ($name, $package, $want) = @$tool;
    if (!on_path($name)) {
        push(@problems, "$name was not found on PATH");
        $packages{$package} = 1;
        next;
    }
    next if (!defined($want));
    my ($have) = (`$name --version 2>/dev/null` =~ /(\d+(?:\.\d+)+)/);
    if (defined($have) && !at_least($have, $want)) {
        push(@problems, "$name is $have, and $want is the oldest that will do");
        $packages{$package} = 1;
    }
}
if (@problems) {
    print STDERR "autogen.pl: $_\n" foreach (@problems);
    print STDERR "autogen.pl: on Debian and Ubuntu: apt-get install "
      . join(" ", sort(keys(%packages))) . "\n";
    exit 1;
}

print "autogen.pl: running autoreconf in $top\n";
system("autoreconf", "-fi") == 0
  or die "autogen.pl: autoreconf failed (its messages are above)\n";
print "autogen.pl: done; next: ./configure (or, out of tree, $top/configure)\n";
