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
 * What drives the HCA: a thread for processes that do something else, and the callers themselves,
 * whenever libmlx5 gives a lock back (it takes one at every post and every poll).
 */

#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim.h"

/** Start the thread and the wire, unless they run. With the lock. @return 0 or -1 */
int sim_engine_start(void);
/** Stop both at exit. Without the lock. */
void sim_engine_stop(void);
/** Do all that can be done now. With the lock. @return whether anything was */
bool sim_engine_progress(void);
/** Called by user threads, without the lock: do the same if no other thread does. */
void sim_engine_kick(void);

/** A completion queue with a channel was made: look after its events from now on. */
void sim_engine_watch_channels(void);

#endif /* SIM_ENGINE_H */
