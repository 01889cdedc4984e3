/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Queue pairs to peers made anew: btl_umr_rebuild.c under messages of both directions, in Promela. Functions, states and
 * packets have the names that they have there and in pml_umrddt_send_rndv.c and pml_umrddt_recv_rndv.c, of which here is only what
 * one round does; message.pml has the rest.
 *
 * Each side has one lane: the generation of its last endpoint, and whether that is broken. Left open are when an
 * endpoint fails, on which side, with what under way; in what order envelopes are matched; whether a write that failed for its
 * sender lands all the same, later; and whether it is time for another queue pair. One step is what happens with the HCA's lock held.
 *
 * What must hold, in every run:
 *   - a write lands only while its message waits for its FIN (no stale write);
 *   - every message ends at both sides, by the HCA or by the base PML, once;
 *   - endpoints that are connected to each other are of one generation;
 *   - when nothing fails any more, the fourth message from either side goes by the HCA, unless the attempts are used up; also
 *     while an envelope of before waits for its receive.
 *
 * -DBREAK_n takes one of the rules out; see run_spin. Each of them must make the check fail.
 */

#ifndef MESSAGES
#define MESSAGES 3 /* while things fail; those of even numbers from side 0 */
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef TRIES
#define TRIES 6 /* btl_umr_rebuilds */
#endif
#define LAST 4 /* messages from each side when nothing fails any more */
#define ALL  (MESSAGES + 2 * LAST)

mtype = { CTS, FALLBACK, ACK }; /* mca_pml_umrddt_reply_kind_t */
mtype = { IDLE, FIN, BY_BASE, COMPLETE };
mtype = { NONE, IN_FLIGHT, LANDED, LOST }; /* a write */

/* mca_btl_umr_lane_t, and its last endpoint */
byte generation[2], wanted[2], tries[2];
bool broken[2], connected[2];
byte theirs[2];   /* the generation that it is connected to */
byte puts[2];     /* in flight */
byte receives[2]; /* FINs that have come and were not polled */

chan rts[ALL] = [1] of { byte };                /* the generation of address */
chan reply[ALL] = [2] of { mtype, byte, bool }; /* reply_kind, the generation of address, there is one */
chan fail_notice[ALL] = [1] of { bool };        /* in_flight */
chan fin[ALL] = [1] of { bool };

mtype r_state[ALL] = IDLE;
mtype write[ALL] = NONE;
byte s_generation[ALL]; /* of send->endpoint */
bool untaken[ALL];
bool by_hca[ALL];
byte over;  /* messages that ended, at both sides */
bool quiet; /* nothing fails any more, and no attempt is too early */
bool stops; /* what fails, from now on does not */

byte sender[ALL];
#define SENDER(m)   sender[m]
#define RECEIVER(m) (1 - sender[m])
#define ALIVE(side, g) (generation[side] == g && !broken[side])

/* mca_btl_umr_endpoint_fail, of the endpoint of this generation; one that is not the last is broken already */
inline endpoint_fail(side, gen)
{
    if
    :: gen == generation[side] && !broken[side] -> broken[side] = true; tries[side]++
    :: else -> skip
    fi
}

/* replace, in the place of a broken one. What is not drained stays as it is, and another message tries again */
inline replace(side, gen)
{
    if
#ifndef BREAK_1
    :: puts[side] == 0 && receives[side] == 0 ->
#else
    :: puts[side] == 0 ->
        /* the completions go with the queue pair */
        for (i : 0 .. ALL - 1) {
            if
            :: RECEIVER(i) == side && len(fin[i]) > 0 -> fin[i]?_; receives[side]--
            :: else -> skip
            fi
        }
#endif
        generation[side] = gen;
        broken[side] = false;
        connected[side] = false
    :: else -> skip
    fi
}

/* mca_btl_umr_endpoint_near: it may be too early for another one */
inline endpoint_near(side)
{
    if
    :: broken[side] && tries[side] <= TRIES && generation[side] + 1 < wanted[side] -> replace(side, wanted[side])
    :: broken[side] && tries[side] <= TRIES && generation[side] + 1 >= wanted[side] -> replace(side, generation[side] + 1)
    :: broken[side] && !quiet -> skip
    :: !broken[side] || tries[side] > TRIES -> skip
    fi
}

/* mca_btl_umr_endpoint_follow */
inline endpoint_follow(side, gen)
{
#ifndef BREAK_4
    endpoint_fail(side, generation[side]);
#endif
    if
    :: broken[side] -> replace(side, gen)
    :: else -> skip
    fi;
    if
    :: broken[side] && wanted[side] <= gen -> wanted[side] = gen + 1
    :: else -> skip
    fi
}

/* mca_btl_umr_endpoint_connect to an address of generation gen. ok: it is connected */
inline endpoint_connect(side, own, gen, ok)
{
#ifndef BREAK_2
    ok = own == generation[side] && !broken[side] && gen == own;
#else
    ok = own == generation[side] && !broken[side];
#endif
    if
    :: ok && !connected[side] -> connected[side] = true; theirs[side] = gen
    :: ok && connected[side] -> ok = theirs[side] == gen
    :: else -> skip
    fi;
    assert(!connected[side] || theirs[side] == generation[side])
}

/* mca_btl_umr_endpoint_refused: of the endpoint of this generation, by a peer that has gen */
inline endpoint_refused(side, own, gen)
{
    if
    :: gen == own -> endpoint_fail(side, own)
#ifndef BREAK_3
    :: gen > own -> endpoint_fail(side, own)
#endif
    :: gen < own && own == generation[side] && !connected[side] -> endpoint_fail(side, own)
    :: else -> skip
    fi;
#ifndef BREAK_3
    if
    :: gen > wanted[side] -> wanted[side] = gen
    :: else -> skip
    fi;
    if
    :: gen > generation[side] -> endpoint_fail(side, generation[side])
    :: else -> skip
    fi
#endif
}

/* The network, and the receiver's HCA. A write may land that failed for its sender */
proctype Network(byte m)
{
end:
    atomic {
        write[m] == IN_FLIGHT;
        if
        :: ALIVE(RECEIVER(m), s_generation[m]) && connected[RECEIVER(m)] ->
            assert(r_state[m] == FIN); /* no stale write */
            write[m] = LANDED;
            receives[RECEIVER(m)]++;
            fin[m]!true
        :: !ALIVE(RECEIVER(m), s_generation[m]) -> write[m] = LOST
        fi
    }
}

proctype Sender(byte m)
{
    bool ok, has_address;
    byte g, i;
    mtype reply_kind;

    atomic {
        endpoint_near(SENDER(m));
        s_generation[m] = generation[SENDER(m)];
        if
        :: broken[SENDER(m)] -> untaken[m] = true; goto over_at_last
        :: else -> rts[m]!s_generation[m]
        fi
    }
    atomic {
        reply[m]?reply_kind, g, has_address;
        if
        :: reply_kind == FALLBACK -> goto await_base
        :: else -> skip
        fi;
        assert(reply_kind == CTS);
        endpoint_connect(SENDER(m), s_generation[m], g, ok);
        if
        :: !ok -> fail_notice[m]!false; goto answer
        :: else -> write[m] = IN_FLIGHT; puts[SENDER(m)]++
        fi
    }
    atomic {
        if
        :: write[m] == LANDED && ALIVE(SENDER(m), s_generation[m]) ->
            puts[SENDER(m)]--;
            by_hca[m] = true;
            goto over_at_last
        :: write[m] == LOST && ALIVE(SENDER(m), s_generation[m]) ->
            puts[SENDER(m)]--;
            endpoint_fail(SENDER(m), s_generation[m]);
            fail_notice[m]!true
        :: !ALIVE(SENDER(m), s_generation[m]) -> /* flushed */
            puts[SENDER(m)]--;
            fail_notice[m]!true
        fi
    }
answer:
    atomic {
        reply[m]?reply_kind, g, has_address;
        assert(reply_kind != CTS);
        if
        :: reply_kind == ACK -> by_hca[m] = true
        :: else -> skip
        fi
    }
await_base:
    atomic {
        if
        :: has_address -> endpoint_refused(SENDER(m), s_generation[m], g)
        :: else -> skip
        fi
    }
over_at_last:
    over++
}

proctype Receiver(byte m)
{
    bool ok, in_flight;
    byte a, g, i;

    atomic {
        if
        :: untaken[m] -> over++; goto end
        :: rts[m]?a ->
            if
            :: a > generation[RECEIVER(m)] -> endpoint_follow(RECEIVER(m), a)
            :: else -> skip
            fi;
            g = generation[RECEIVER(m)];
            endpoint_connect(RECEIVER(m), g, a, ok);
            if
            :: ok -> r_state[m] = FIN; reply[m]!CTS, g, true
            :: else ->
                r_state[m] = BY_BASE;
                reply[m]!FALLBACK, g, broken[RECEIVER(m)] || g != a;
                over++;
                goto end
            fi
        fi
    }
    atomic {
        if
        :: fin[m]?_ -> receives[RECEIVER(m)]--; r_state[m] = COMPLETE; over++
        :: fail_notice[m]?in_flight ->
            if
            :: in_flight -> endpoint_fail(RECEIVER(m), g)
            :: else -> skip
            fi;
            r_state[m] = BY_BASE;
            reply[m]!FALLBACK, g, !ALIVE(RECEIVER(m), g);
            over++
        fi
    }
end:
    do
    :: atomic { fin[m]?_ -> receives[RECEIVER(m)]-- } /* polled, of no message */
    :: atomic { fail_notice[m]?in_flight -> assert(r_state[m] == COMPLETE); reply[m]!ACK, 0, false }
    od
}

inline send(m, side)
{
    sender[m] = side;
    run Sender(m);
    run Network(m);
    if
    :: m == MESSAGES - 1 -> unmatched = true
    :: run Receiver(m)
    fi
}

active proctype Faults()
{
    byte left = FAULTS;

    do
    :: atomic { left > 0 && !stops && !broken[0] -> endpoint_fail(0, generation[0]); left-- }
    :: atomic { left > 0 && !stops && !broken[1] -> endpoint_fail(1, generation[1]); left-- }
    :: left == 0 || stops -> break
    od
}

init
{
    byte m, k, behind;
    bool unmatched; /* the last one of the first is received only after all others are over */

    atomic {
        for (m : 0 .. MESSAGES - 1) {
            send(m, m % 2)
        }
    }
    if
    :: unmatched ->
        atomic {
            over >= 2 * MESSAGES - 2 && (len(rts[MESSAGES - 1]) == 1 || untaken[MESSAGES - 1]);
            behind = (untaken[MESSAGES - 1] -> 1 : 2)
        }
    :: !unmatched -> over == 2 * MESSAGES
    fi;
    atomic {
        receives[0] == 0 && receives[1] == 0;
        stops = true;
        quiet = true
    }
    for (k : 0 .. 1) {
        for (m : MESSAGES + k * LAST .. MESSAGES + k * LAST + LAST - 1) {
            atomic { send(m, k) }
            over == 2 * (m + 1) - behind && receives[0] == 0 && receives[1] == 0
        }
        assert(by_hca[MESSAGES + k * LAST + LAST - 1] || tries[0] > TRIES || tries[1] > TRIES)
    }
    if
    :: unmatched -> run Receiver(MESSAGES - 1); over == 2 * ALL
    :: else -> skip
    fi
}
