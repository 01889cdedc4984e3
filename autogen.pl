#!/usr/bin/env perl
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# Makes ./configure and the Makefile.in files from their sources. Needed in a git clone only; the
# release tarball has them.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

# Tool => the package of Debian and Ubuntu that brings it, the oldest version that will do.
my @tools = (
    ["autoconf",   "autoconf",  "2.69"],
    ["automake",   "automake",  "1.15"],
    ["libtoolize", "libtool",   "2.4.6"],
    ["autoreconf", "autoconf",  undef],
    ["pkg-config", "pkg-config", "0.29"],
);

sub usage
{
    print "Usage: ./autogen.pl [--help]\n\n"
      . "Makes ./configure from configure.ac and config/*.m4 (runs autoreconf). Then:\n"
      . "  ./configure && make && make check && make install\n";
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

foreach my $arg (@ARGV) {
    usage() if ($arg eq "-h" || $arg eq "--help");
    die "autogen.pl: unknown argument '$arg' (see ./autogen.pl --help)\n";
}

my $top = dirname(abs_path($0));
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
