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
 * one round does; message.pml has the rest. With CLOSES, both sides have btl_umr_max_peers, and close queue pairs where
 * nothing is under way (btl_umr_room.c).
 *
 * Each side has one lane: the generation of its last endpoint, and whether that is broken. Left open are when an
 * endpoint fails, on which side, with what under way; in what order envelopes are matched; whether a write that failed for its
 * sender lands all the same, later; whether it is time for another queue pair; when one is closed, and whether there is room
 * for another one then. One step is what happens with the HCA's lock held.
 *
 * What must hold, in every run:
 *   - a write lands only while its message waits for its FIN (no stale write);
 *   - a queue pair that is closed has taken no FIN that was not polled;
 *   - every message ends at both sides, by the HCA or by the base PML, once;
 *   - endpoints that are connected to each other are of one generation;
 *   - when nothing fails any more, the fourth message from either side goes by the HCA, unless the attempts are used up; also
 *     while an envelope of before waits for its receive;
 *   - a side counts no failure where none happens (FAULTS=0), whatever is closed. (With MESSAGES=2. With more, it may try
 *     again before the other side has polled all of its completions, which counts.)
 *
 * -DBREAK_n takes one of the rules out; see run_spin. Each of them must make the check fail.
 */

#ifndef MESSAGES
#define MESSAGES 3 /* while things fail; those of even numbers from side 0 */
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef CLOSES
#define CLOSES 0 /* queue pairs closed for another peer, while things fail */
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
byte expected[2]; /* FINs, by the last endpoint */
int closed[2];    /* a bit for each generation that was closed */
bool replaces[2]; /* it was created in place of one that was not closed */

chan rts[ALL] = [1] of { byte };                /* the generation of address */
/* reply_kind, the generation of address, there is one, and it has the packet sequence number 0 */
chan reply[ALL] = [2] of { mtype, byte, bool, bool };
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
#define CLOSED(side, g) ((closed[side] >> (g)) & 1)
#ifndef BREAK_5
#define MAY_CLOSE(side) (CLOSES > 0 && !broken[side] && puts[side] == 0 && expected[side] == 0)
#else
#define MAY_CLOSE(side) (CLOSES > 0 && !broken[side] && puts[side] == 0)
#endif

/* mca_btl_umr_endpoint_fail, of the endpoint of this generation; one that is not the last is broken already */
inline endpoint_fail(side, gen)
{
    if
    :: gen == generation[side] && !broken[side] -> broken[side] = true; tries[side]++
    :: else -> skip
    fi
}

/* mca_btl_umr_endpoint_abandon: the same, and no failure */
inline endpoint_abandon(side, gen)
{
    if
    :: gen == generation[side] -> broken[side] = true
    :: else -> skip
    fi
}

/* mca_btl_umr_endpoint_close, of the last endpoint, which may be closed */
inline endpoint_close(side)
{
    assert(receives[side] == 0);
    broken[side] = true;
    closed[side] = closed[side] | (1 << generation[side])
}

/* A new endpoint, in the place of a broken one */
inline endpoint_new(side, gen)
{
    generation[side] = gen;
    broken[side] = false;
    connected[side] = false;
    expected[side] = 0
}

/* reopen, in the place of a closed one. Without room, another message tries again */
inline reopen(side, gen)
{
    if
    :: endpoint_new(side, gen); replaces[side] = false
    :: !quiet -> skip
    fi
}

/* An expected FIN came, or will not come, to the endpoint of this generation */
inline expect_less(side, gen)
{
    if
    :: gen == generation[side] && expected[side] > 0 -> expected[side]--
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
        endpoint_new(side, gen);
        replaces[side] = true
    :: else -> skip
    fi
}

/* mca_btl_umr_endpoint_near: it may be too early for another one */
inline endpoint_near(side)
{
    g = (generation[side] + 1 < wanted[side] -> wanted[side] : generation[side] + 1);
    if
    :: broken[side] && CLOSED(side, generation[side]) -> reopen(side, g)
    :: broken[side] && !CLOSED(side, generation[side]) && tries[side] <= TRIES -> replace(side, g)
    :: broken[side] && !CLOSED(side, generation[side]) && !quiet -> skip
    :: !broken[side] || (!CLOSED(side, generation[side]) && tries[side] > TRIES) -> skip
    fi
}

/* mca_btl_umr_endpoint_follow */
inline endpoint_follow(side, gen)
{
    if
    :: MAY_CLOSE(side) -> endpoint_close(side)
    :: else -> skip
    fi;
    if
    :: CLOSED(side, generation[side]) -> reopen(side, gen)
    :: else ->
#ifndef BREAK_4
#if CLOSES && !defined(BREAK_7)
        endpoint_abandon(side, generation[side]);
#else
        endpoint_fail(side, generation[side]);
#endif
#endif
        if
        :: broken[side] -> replace(side, gen)
        :: else -> skip
        fi;
        if
        :: broken[side] && wanted[side] <= gen -> wanted[side] = gen + 1
        :: else -> skip
        fi
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

/* mca_btl_umr_endpoint_refuses: what the answer says of the endpoint of this generation, to a message of a */
inline endpoint_refuses(m, side, own, a)
{
    if
    :: CLOSED(side, own) -> reply[m]!FALLBACK, own + 1, a <= own, true
    :: else -> reply[m]!FALLBACK, own, !ALIVE(side, own) || own != a, false
    fi
}

/* mca_btl_umr_endpoint_refused: of the endpoint of this generation, by a peer that has gen, or (psn_0) has closed its end */
inline endpoint_refused(side, own, gen, psn_0)
{
#ifndef BREAK_6
    if
    :: gen > own && own == generation[side] && MAY_CLOSE(side) -> endpoint_close(side)
    :: else -> skip
    fi;
#endif
    if
    :: psn_0 || (gen > own && CLOSED(side, own)) -> skip
    :: !psn_0 && gen == own -> endpoint_fail(side, own)
#ifndef BREAK_3
    :: !psn_0 && gen > own && !CLOSED(side, own) -> endpoint_fail(side, own)
#endif
    :: !psn_0 && gen < own && own == generation[side] && !connected[side] ->
        if
#ifndef BREAK_8
        :: !replaces[side] -> endpoint_abandon(side, own)
        :: replaces[side] -> endpoint_fail(side, own)
#else
        :: endpoint_fail(side, own)
#endif
        fi
    :: else -> skip
    fi;
#ifndef BREAK_3
    if
    :: gen > wanted[side] -> wanted[side] = gen
    :: else -> skip
    fi;
    if
    :: gen > generation[side] && !psn_0 && MAY_CLOSE(side) -> endpoint_close(side)
    :: gen > generation[side] && !psn_0 && !MAY_CLOSE(side) -> endpoint_fail(side, generation[side])
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
    bool ok, has_address, psn_0;
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
        reply[m]?reply_kind, g, has_address, psn_0;
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
        reply[m]?reply_kind, g, has_address, psn_0;
        assert(reply_kind != CTS);
        if
        :: reply_kind == ACK -> by_hca[m] = true
        :: else -> skip
        fi
    }
await_base:
    atomic {
        if
        :: has_address -> endpoint_refused(SENDER(m), s_generation[m], g, psn_0)
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
            :: ok -> r_state[m] = FIN; expected[RECEIVER(m)]++; reply[m]!CTS, g, true, false
            :: else ->
                r_state[m] = BY_BASE;
                endpoint_refuses(m, RECEIVER(m), g, a);
                over++;
                goto end
            fi
        fi
    }
    atomic {
        if
        :: fin[m]?_ ->
            receives[RECEIVER(m)]--;
            expect_less(RECEIVER(m), g);
            r_state[m] = COMPLETE;
            over++
        :: fail_notice[m]?in_flight ->
            if
            :: in_flight -> endpoint_fail(RECEIVER(m), g)
            :: else -> expect_less(RECEIVER(m), g)
            fi;
            r_state[m] = BY_BASE;
            endpoint_refuses(m, RECEIVER(m), g, g);
            over++
        fi
    }
end:
    do
    :: atomic { fin[m]?_ -> receives[RECEIVER(m)]--; expect_less(RECEIVER(m), g) } /* polled, of no message */
    :: atomic { fail_notice[m]?in_flight -> assert(r_state[m] == COMPLETE); reply[m]!ACK, 0, false, false }
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

#if CLOSES
active proctype Room()
{
    byte left = CLOSES;

    do
    :: atomic { left > 0 && !stops && MAY_CLOSE(0) -> endpoint_close(0); left-- }
    :: atomic { left > 0 && !stops && MAY_CLOSE(1) -> endpoint_close(1); left-- }
    :: left == 0 || stops -> break
    od
}
#endif

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
    assert(FAULTS > 0 || MESSAGES > 2 || tries[0] + tries[1] == 0);
    if
    :: unmatched -> run Receiver(MESSAGES - 1); over == 2 * ALL
    :: else -> skip
    fi
}
