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
 * The part of an event for other processes: the number of records, and of reached ones. With the
 * lock held, where nothing else is said.
 */

#ifndef GPU_EVENT_IPC_H
#define GPU_EVENT_IPC_H

#include "gpu.h"

struct gpu_shared_event;

/** A new one, with one reference; NULL if there is no room. */
struct gpu_shared_event *gpu_shared_make(void);

void gpu_shared_hold(struct gpu_shared_event *event);
void gpu_shared_drop(struct gpu_shared_event *event);

/** Count a record. @return its number */
uint64_t gpu_shared_record(struct gpu_shared_event *event);

/** That record was reached. No lock. */
void gpu_shared_reach(struct gpu_shared_event *event, uint64_t number);

/** The last record's number; 0: there was none. */
uint64_t gpu_shared_recorded(const struct gpu_shared_event *event);

/** Was that record reached? No lock. */
bool gpu_shared_reached(const struct gpu_shared_event *event, uint64_t number);

/** Wait for it, without the lock. */
void gpu_shared_wait(const struct gpu_shared_event *event, uint64_t number);

/** Describe one that was made here. */
CUresult gpu_shared_export(const struct gpu_shared_event *event, CUipcEventHandle *handle);

/** Open one that was made elsewhere, with one reference. */
CUresult gpu_shared_open(const CUipcEventHandle *handle, struct gpu_shared_event **event);

#endif /* GPU_EVENT_IPC_H */
