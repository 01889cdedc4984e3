/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * A process of message_instructions: one message after the other, in steps that the two processes
 * take in turns, so every poll finds its event.
 */

#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

/** First argument of such a process; then the layout and a file that both share. */
#define BENCH_MESSAGE_JOB "--message-job"

/** Be a process of such a job; MPI is not initialised, and finalised in the end. @return as main */
int bench_message_job_main(int argc, char **argv);

#endif /* BENCH_MESSAGE_H */
