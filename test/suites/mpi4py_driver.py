# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Runs the test programs of mpi4py, unmodified, in one MPI process, and notes what became of each.

usage (in a job): mpi4py_driver.py TESTDIR PREFIX [OPTION OF test/main.py]...

Each process writes PREFIX.RANK: a line "start ID" before a test and "OUTCOME ID" after it (pass, fail, error,
skip), each flushed, so that the output of a job that dies or hangs has the test; a last line "end" if all were run.
"""

import os
import sys
import unittest

OUTCOMES = ("pass", "skip", "fail", "error")


class Result(unittest.TextTestResult):
    """A result that keeps a journal beside the usual text."""

    journal = None
    worst = None

    def note(self, word, test):
        self.journal.write("%s %s\n" % (word, test.id()))
        self.journal.flush()

    def seen(self, outcome):
        if self.worst is not None and OUTCOMES.index(outcome) > OUTCOMES.index(self.worst):
            self.worst = outcome

    def startTest(self, test):
        self.worst = "pass"
        self.note("start", test)
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.note(self.worst, test)
        self.worst = None

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.seen("fail")

    def addError(self, test, err):
        super().addError(test, err)
        self.seen("error")
        # what is outside of a test: setUpClass, an import that failed
        if self.worst is None:
            self.note("error", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.seen("fail")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.seen("skip")
        if self.worst is None:
            self.note("skip", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.seen("fail")


def main():
    testdir, prefix = sys.argv[1:3]
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMIX_RANK") or "0"
    sys.dont_write_bytecode = True
    sys.path.insert(0, testdir)
    sys.argv = [os.path.join(testdir, "main.py")] + sys.argv[3:]
    with open("%s.%s" % (prefix, rank), "w", encoding="utf-8") as journal:
        Result.journal = journal
        program = __import__("main")
        runner = unittest.TextTestRunner(resultclass=Result, verbosity=2)
        try:
            program.main(module=None, testRunner=runner)
        finally:
            journal.write("end\n")
            journal.flush()


if __name__ == "__main__":
    main()
