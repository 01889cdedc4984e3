#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# pyverbs_driver.py TABLE MODULE [PATTERN...]
# pyverbs_driver.py TABLE --plan MODULE...
#
# Runs one module of rdma-core's tests, in the directory above "tests"; or prints the tests to run. For
# run_pyverbs, which has the rest. Its lines begin with "%% ", since tests print too. Exit status 0 unless
# something failed.

import fnmatch
import importlib
import os
import sys
import time
import unittest


def read_table(path):
    """[(pattern, reason)]; reason '+': it applies"""
    rows = []
    with open(path) as file:
        for line in file:
            words = line.split('#')[0].split(None, 1)
            if words:
                rows.append((words[0], words[1].strip()))
    return rows


def reason_of(rows, name):
    for pattern, reason in rows:
        if fnmatch.fnmatchcase(name, pattern):
            return reason
    return None


def say(word, text):
    sys.stdout.flush()
    print(f'%% {word:<5} {text}', flush=True)


class Result(unittest.TestResult):
    """A line for each test. One that skips itself has failed: the table says that it applies."""

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.bad = False

    def fail(self, test, error):
        self.bad = True
        say('FAIL', f'{short(test)}: {error[1]}')
        print(self._exc_info_to_string(error, test))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.fail(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.fail(test, error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.failures.append((test, reason))
        self.bad = True
        say('FAIL', f'{short(test)}: it applies, but skips itself: {reason}')

    def stopTest(self, test):
        super().stopTest(test)
        if not self.bad:
            say('PASS', f'{short(test)} ({time.monotonic() - self.began:.2f} s)')


def short(test):
    return test.id().removeprefix('tests.')


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def plan(rows, modules):
    """A module of which nothing applies is not even loaded: it may need missing features."""
    for module in modules:
        reason = reason_of(rows, module + '.*')
        if any('+' == reason and pattern.split('.')[0] == module for pattern, reason in rows):
            print('run', module)
        elif reason is None:
            say('???', module)
        else:
            say('N/A', f'{module}: {reason}')


def main():
    rows = read_table(sys.argv[1])
    if '--plan' == sys.argv[2]:
        plan(rows, sys.argv[3:])
        return 0
    module = sys.argv[2]
    wanted = sys.argv[3:] or ['*']

    sys.path[:0] = [os.path.join(os.getcwd(), 'tests'), os.getcwd()]
    sys.argv[1:] = ['--dev', 'mlx5_0']
    from args_parser import parser
    parser.parse_args()
    loaded = importlib.import_module('tests.' + module)
    suite = unittest.TestSuite()
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(loaded)):
        name = short(test)
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted):
            continue
        reason = reason_of(rows, name)
        if '+' == reason:
            suite.addTest(test)
        else:
            say('N/A', f'{name}: {reason}')
    result = Result()
    suite.run(result)
    return 0 if not result.failures and not result.errors else 1


if __name__ == '__main__':
    sys.exit(main())
