/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Handled messages between two processes, by keys: pml_umrddt_send_rndv.c, pml_umrddt_recv_rndv.c and
 * pml_umrddt_sets.c over one pair of endpoints of btl/umr, in Promela. States, packets and functions have the
 * names that they have there.
 *
 * Every message is a process at each side; what one event handler of the code does is one atomic step, since
 * state machines run in mca_pml_umrddt_progress only. All that the code decides by time, memory or luck is left open here: how
 * many rounds a message takes, whether keys can be mapped, when kept keys are evicted (or their memory is
 * freed and another buffer is at the address), which slot is named, whether and when the network fails, and whether a write
 * that failed for the sender lands all the same, later.
 *
 * What must hold, in every run:
 *   - a write lands only while its message waits for the FIN of its round, under keys that are that round's (no stale write);
 *   - a message is complete at the receiver once, with its own data in all of the buffer;
 *   - every send completes, every credit and every key comes back (an invalid end state otherwise);
 *   - no cache is longer than its bound.
 *
 * -DBREAK_n takes one of the rules out; see run_spin. Each of them must make the check fail.
 */

#ifndef MESSAGES
#define MESSAGES 3 /* in flight at once */
#endif
#ifndef BUFFERS
#define BUFFERS 2 /* of the receiver's application */
#endif
#ifndef CACHE_SLOTS
#define CACHE_SLOTS 1 /* pml_umrddt_key_sets */
#endif
#ifndef CREDITS
#define CREDITS 1 /* receives for FINs that an endpoint can have at once */
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* of a message, at most */
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#ifndef REQUEST_IDS
#define REQUEST_IDS 2 /* where the sender waits for replies */
#endif
#ifndef CACHE
#define CACHE 1 /* pml_umrddt_mkey_cache */
#endif

mtype = { CTS, CTS_CACHED, FALLBACK, ACK }; /* mca_pml_umrddt_reply_kind_t, and the CTS by reference */
mtype = { IDLE, MATCHED, MAPPING, CREDIT, FIN, BY_BASE, COMPLETE };

/* ---- Between them: the base PML, one tag each, and the network ---- */

chan rts = [MESSAGES] of { byte, bool };                      /* message; plain: it was not taken */
chan reply[REQUEST_IDS] = [4] of { byte, mtype, byte, byte, bool }; /* message, reply_kind, set, slot + 1 or 0, last round */
chan fail_notice[MESSAGES] = [1] of { bool };                 /* in_flight */
chan data[MESSAGES] = [1] of { byte };
chan wire = [2 * MESSAGES] of { byte, byte, byte, bool };     /* message, round, set, with the FIN */
chan late = [2 * MESSAGES] of { byte, byte, byte, bool };     /* the sender has seen their error already */
chan put_done[MESSAGES] = [1] of { bool };
chan fin[MESSAGES] = [ROUNDS] of { byte };                    /* the receiver's completion queue: round */

bool send_broken, recv_broken; /* the two endpoints */
byte request_id_of[MESSAGES];        /* rts->slot */

/* ---- The receiver ---- */

mtype r_state[MESSAGES] = IDLE;
byte r_round[MESSAGES];
byte r_set[MESSAGES];
byte r_buffer[MESSAGES];
bool busy[BUFFERS];                  /* a receive is posted there */
byte content[BUFFERS * ROUNDS];      /* whose data is in a part of a buffer: message + 1 */
byte kept[BUFFERS * ROUNDS];         /* the id of the keyset of a part; 0: none. While it is here the HCA takes writes */
byte users[BUFFERS * ROUNDS];
byte ids;                            /* ids given so far: none is given twice */
byte credits = CREDITS;
byte evictions = EVICTIONS;
byte completed;

/* pml_umrddt_sets.c: the receiver's record of a cache slot of the sender */
byte slot_id[CACHE_SLOTS];
bool slot_valid[CACHE_SLOTS];
bool slot_taken[CACHE_SLOTS];

/* ---- The sender ---- */

byte set_id[CACHE_SLOTS]; /* the content of a slot */
bool request_id_taken[REQUEST_IDS];
byte sent;
byte drained;

#define PART(m) (r_buffer[m] * ROUNDS + r_round[m])

/* mca_pml_umrddt_set_name: any slot that is not taken, where the code takes the oldest */
inline set_name(id, slot, reply_kind)
{
    slot = 0;
    reply_kind = CTS;
    if
    :: slot_id[0] == id ->
        if
        :: slot_taken[0] || !slot_valid[0] -> skip
        :: else -> slot = 1; slot_taken[0] = true; reply_kind = CTS_CACHED
        fi
#if CACHE_SLOTS > 1
    :: slot_id[1] == id ->
        if
        :: slot_taken[1] || !slot_valid[1] -> skip
        :: else -> slot = 2; slot_taken[1] = true; reply_kind = CTS_CACHED
        fi
    :: slot_id[0] != id && slot_id[1] != id && !slot_taken[1] -> slot = 2
#endif
#if CACHE_SLOTS > 1
    :: slot_id[0] != id && slot_id[1] != id && !slot_taken[0] -> slot = 1
#else
#if BREAK_3
    :: slot_id[0] != id -> slot = 1
#else
    :: slot_id[0] != id && !slot_taken[0] -> slot = 1
#endif
#endif
    :: else -> skip
    fi;
    if
    :: slot != 0 && reply_kind == CTS ->
        slot_taken[slot - 1] = true;
        slot_id[slot - 1] = id;
        slot_valid[slot - 1] = false
    :: else -> skip
    fi
}

/* mca_pml_umrddt_slot_end */
inline set_end(slot, well)
{
    if
    :: slot != 0 ->
        slot_taken[slot - 1] = false;
        slot_valid[slot - 1] = well;
        if
        :: !well -> slot_id[slot - 1] = 0
        :: else -> skip
        fi;
        slot = 0
    :: else -> skip
    fi
}

/* keyset_keep and keyset_release */
inline keys_leave(m, keep)
{
    if
    :: r_set[m] != 0 ->
        users[PART(m)]--;
        if
        :: !keep && users[PART(m)] == 0 -> kept[PART(m)] = 0
        :: else -> skip
        fi;
        r_set[m] = 0
    :: else -> skip
    fi
}

/* mca_pml_umrddt_recv_by_base */
inline by_base(m, slot)
{
    set_end(slot, false);
    keys_leave(m, false);
    r_state[m] = BY_BASE;
    reply[request_id_of[m]]!m, FALLBACK, 0, 0, false
}

inline complete(m)
{
    assert(r_state[m] != COMPLETE);
    r_state[m] = COMPLETE;
    busy[r_buffer[m]] = false;
    completed++
}

/* mca_pml_umrddt_recv_failed, where the receive is still here and not with the base PML yet */
inline failed(m, slot, in_flight)
{
    if
    :: r_state[m] == FIN && in_flight ->
#if !BREAK_1
        recv_broken = true
#endif
        skip
    :: r_state[m] == FIN && !in_flight ->
#if !BREAK_2
        credits++
#endif
        skip
    :: else -> skip
    fi;
    by_base(m, slot)
}

proctype receiver(byte m)
{
    byte slot, round, rounds, i;
    bool plain, in_flight;
    mtype reply_kind;

    /* the base PML matches in order; the application has posted a receive into a buffer of its own */
    atomic {
        rts?eval(m), plain;
        r_state[m] = MATCHED
    }
    atomic {
        if
        :: !busy[0] -> r_buffer[m] = 0
#if BUFFERS > 1
        :: !busy[1] -> r_buffer[m] = 1
#endif
        fi;
        busy[r_buffer[m]] = true;
        if
        :: rounds = 1
#if ROUNDS > 1
        :: rounds = 2
#endif
        fi;
        if
        :: plain -> r_state[m] = BY_BASE
        :: !plain && recv_broken -> by_base(m, slot)
        :: !plain -> by_base(m, slot) /* no registration, no memory, a scheme that is not wanted */
        :: !plain && !recv_broken -> skip
        fi
    };

next_round:
    /* keyset_map: from the cache, or mapped now; the HCA says that it is complete before it is used */
    do
    :: atomic {
        r_state[m] != BY_BASE && r_state[m] != CREDIT ->
        if
        :: by_base(m, slot) /* the HCA refuses */
        :: skip ->
            r_state[m] = MAPPING;
            if
            :: kept[PART(m)] == 0 -> ids++; kept[PART(m)] = ids
            :: else -> skip
            fi;
            users[PART(m)]++;
            r_set[m] = kept[PART(m)];
            r_state[m] = CREDIT
        fi
      }
    /* take_credit and cts */
    :: atomic {
        r_state[m] == CREDIT && recv_broken -> by_base(m, slot)
      }
    :: atomic {
        r_state[m] == CREDIT && !recv_broken && credits > 0 ->
        credits--;
        set_name(r_set[m], slot, reply_kind);
        r_state[m] = FIN;
        reply[request_id_of[m]]!m, reply_kind, r_set[m], slot, (r_round[m] + 1 == rounds);
        break
      }
    /* its word on a round before this one, whose FIN has come */
    :: atomic { r_state[m] == CREDIT && fail_notice[m]?[_] -> fail_notice[m]?in_flight; failed(m, slot, in_flight) }
    :: r_state[m] == BY_BASE -> goto base_done
    od;

    do
    :: atomic {
        fin[m]?round ->
        assert(r_state[m] == FIN && round == r_round[m]);
        credits++;
        assert(content[PART(m)] == m + 1);
        set_end(slot, true);
        keys_leave(m, CACHE);
        if
        :: r_round[m] + 1 == rounds ->
            /* all parts were checked at the end of their rounds, and no write is allowed there since */
            i = 0;
            do
            :: i < rounds -> assert(content[r_buffer[m] * ROUNDS + i] == m + 1); i++
            :: else -> break
            od;
            complete(m);
            goto over
        :: else ->
            r_round[m]++;
            r_state[m] = MATCHED;
            goto next_round
        fi
      }
    :: atomic {
        fail_notice[m]?in_flight ->
        failed(m, slot, in_flight);
        goto base_done
      }
    od;

base_done:
end_base:
    do
    :: atomic {
        data[m]?eval(m) ->
        i = 0;
        do
        :: i < ROUNDS -> content[r_buffer[m] * ROUNDS + i] = m + 1; i++
        :: else -> break
        od;
        complete(m);
        goto over
      }
    /* mca_pml_umrddt_recv_failed passes over a receive that is with the base PML already */
    :: atomic { fail_notice[m]?in_flight -> reply[request_id_of[m]]!m, ACK, 0, 0, false }
    /* a FIN that was in the completion queue when the endpoint was broken: protocol_errors */
    :: atomic { fin[m]?round -> credits++ }
    od;

over:
end_over:
    do
    :: atomic { fail_notice[m]?in_flight -> reply[request_id_of[m]]!m, ACK, 0, 0, false }
    :: atomic { fin[m]?round -> credits++ }
    od
}

proctype sender(byte m)
{
    byte whose, set, slot, round;
    bool last, ok, in_flight;
    mtype reply_kind;

    /* mca_pml_umrddt_send_start: messages leave in their order */
    atomic {
        sent == m ->
        if
        :: !request_id_taken[0] -> request_id_of[m] = 0
#if REQUEST_IDS > 1
        :: request_id_taken[0] && !request_id_taken[1] -> request_id_of[m] = 1
#endif
        fi;
        request_id_taken[request_id_of[m]] = true;
        sent++;
        if
        :: send_broken -> rts!m, true; data[m]!m; goto drain
        :: rts!m, false /* broken or not: it has another scheme, too, or breaks only now */
        fi
    };

REPLY:
    /* reply_event */
    atomic {
        reply[request_id_of[m]]?whose, reply_kind, set, slot, last ->
        if
#if BREAK_6
        :: whose != m -> assert(false)
#else
        :: whose != m -> goto REPLY /* the answer to a notice that crossed the end of its message */
#endif
        :: whose == m && reply_kind == FALLBACK -> goto await_base
        :: whose == m && reply_kind == ACK -> goto drain
        :: whose == m && reply_kind == CTS && slot != 0 -> set_id[slot - 1] = set
        :: whose == m && reply_kind == CTS && slot == 0 -> skip
        :: whose == m && reply_kind == CTS_CACHED -> assert(set_id[slot - 1] == set)
        fi;
        /* cts, map_keys, keys_ready: the endpoint may be broken, and keys may be refused */
        if
        :: in_flight = false; goto fail
        :: !send_broken ->
            wire!m, round, set, false;
            wire!m, round, set, true
        fi
    };

    atomic {
        put_done[m]?ok ->
        if
        :: !ok -> in_flight = true; goto fail
        :: ok && last -> goto drain
        :: ok && !last -> round++; goto REPLY
        fi
    };

fail:
    fail_notice[m]!in_flight;
FAILED:
    atomic {
        reply[request_id_of[m]]?whose, reply_kind, set, slot, last ->
        if
        :: whose != m -> goto FAILED
        :: whose == m && reply_kind == FALLBACK -> goto await_base
        :: whose == m && reply_kind == ACK -> goto drain
#if !BREAK_4
        :: whose == m && (reply_kind == CTS || reply_kind == CTS_CACHED) -> goto FAILED /* crossed the notice */
#else
        :: whose == m && (reply_kind == CTS || reply_kind == CTS_CACHED) -> goto drain
#endif
        fi
    };

await_base:
    data[m]!m;
drain:
    atomic {
        request_id_taken[request_id_of[m]] = false;
        drained++
    }
}

/* A write lands, or its FIN. */
inline land(m, round, set, with_fin)
{
    assert(r_state[m] == FIN && r_round[m] == round && r_set[m] == set);
    assert(kept[PART(m)] == set);
    content[PART(m)] = m + 1;
    if
    :: with_fin -> fin[m]!round
    :: else -> skip
    fi
}

/* The pair of queue pairs, reliable and in order until one of them is in error. */
proctype network()
{
    byte m, round, set;
    bool with_fin;
    bool erred[MESSAGES]; /* the put's error was reported already */

end_network:
    do
    :: atomic {
        !send_broken && !recv_broken && wire?[m, round, set, with_fin] -> wire?m, round, set, with_fin;
        land(m, round, set, with_fin);
        if
        :: with_fin -> put_done[m]!true
        :: else -> skip
        fi
      }
    /* an error: of this one, and of all that are behind it. Writes that the sender has reported may be in flight still */
    :: atomic {
        wire?m, round, set, with_fin ->
        send_broken = true;
        if
        :: late!m, round, set, with_fin
        :: skip
        fi;
        if
        :: !erred[m] -> erred[m] = true; put_done[m]!false
        :: else -> skip
        fi;
        if
        :: with_fin -> erred[m] = false
        :: else -> skip
        fi
      }
    :: atomic {
        late?m, round, set, with_fin ->
        if
        :: !recv_broken -> land(m, round, set, with_fin)
        :: skip
        fi
      }
    od
}

/* The cache's bound, or memory that is freed: unused keys are released, and others get new ids. */
proctype eviction()
{
    byte k;

end_eviction:
    do
    :: atomic {
        evictions > 0 ->
        evictions--;
        if
        :: k = 0
        :: k = 1
#if BUFFERS * ROUNDS > 2
        :: k = 2
        :: k = 3
#endif
        fi;
        if
#if BREAK_5
        :: true -> kept[k] = 0
#else
        :: users[k] == 0 -> kept[k] = 0
#endif
        :: else -> skip
        fi
      }
    :: evictions == 0 -> break
    od
}

init {
    byte i;

    atomic {
        run network();
        run eviction();
        do
        :: i < MESSAGES -> run receiver(i); run sender(i); i++
        :: else -> break
        od
    };
    /* nothing is lost, and nothing is left over */
    (completed == MESSAGES && drained == MESSAGES);
    assert(recv_broken || send_broken || credits == CREDITS);
    i = 0;
    do
    :: i < MESSAGES -> (empty(fail_notice[i])); assert(empty(data[i])); i++
    :: else -> break
    od
}
