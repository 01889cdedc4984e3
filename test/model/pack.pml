/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Handled messages that are packed, in chunks, by the base PML: pml_umrddt_pack.c and
 * pml_umrddt_pack_scheme.c, in Promela; message.pml says how to read it.
 *
 * The base PML brings what has one tag in order, to receives in the order in which they were posted, whoever posted them.
 * It may buffer data: a send is then complete before there is a receive (below its eager limit); a
 * synchronous one never is.
 *
 * Left open here: whether each chunk is kept or waits for its receive; how long each copy takes, and whether it fails;
 * whether the receiver wants the base PML from the beginning; which messages have the same request id.
 *
 * What must hold, in every run:
 *   - a message is complete at the receiver with its own bytes, each chunk in its place, or in an error;
 *   - no buffer is filled anew before its bytes have been sent, or copied on;
 *   - a receive gets the data sent for it, and nothing of another message;
 *   - every message is over at both sides, and nothing is left over.
 *
 * -DBREAK_n takes one of the rules out; see run_spin.
 */

#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef REQUEST_IDS
#define REQUEST_IDS 1
#endif
#ifndef CHUNKS
#define CHUNKS 3 /* of a message */
#endif
#ifndef DEPTH
#define DEPTH 2 /* pml_umrddt_pack_depth */
#endif

mtype = { CTS_PACK, FALLBACK };                       /* mca_pml_umrddt_reply_kind_t */
mtype = { IDLE, COPY, READY, WIRE };          /* of a chunk's place */
mtype = { WELL, NOT_PACKED, FAILED };         /* mca_pml_umrddt_pack_end_t */

#define WHOLE  CHUNKS      /* in place of a chunk's number: the message by the base PML */
#define EMPTY  255         /* a chunk that could not be packed */

chan rts = [MESSAGES] of { byte };
chan reply[REQUEST_IDS] = [2] of { byte, mtype };
/* the tag DATA of a slot: message, chunk, its bytes (message + 1 or EMPTY), where the sender's request is: place + 1, 0: complete */
chan data[REQUEST_IDS] = [2 * (CHUNKS + 1)] of { byte, byte, byte, byte };
/* the receives that are posted there: whose, chunk, place */
chan posted[REQUEST_IDS] = [2 * (CHUNKS + 1)] of { byte, byte, byte };

byte request_id_of[MESSAGES];
bool request_id_taken[REQUEST_IDS];
byte started, drained, completed;

/* the sender's places: pack->chunk */
mtype s_phase[MESSAGES * DEPTH] = IDLE;
byte s_chunk[MESSAGES * DEPTH];
byte s_bytes[MESSAGES * DEPTH];
/* the receiver's */
mtype r_phase[MESSAGES * DEPTH] = IDLE;
byte r_chunk[MESSAGES * DEPTH];
byte r_bytes[MESSAGES * DEPTH];
byte content[MESSAGES * CHUNKS]; /* whose bytes are in the user's buffer: message + 1 */
bool by_base[MESSAGES];          /* the receiver waits for all of it, by the base PML */
bool has_base[MESSAGES];

#define P(m, n) (m * DEPTH + (n) % DEPTH)

#if REQUEST_IDS > 1
#define FREE_SLOT (!request_id_taken[0] || !request_id_taken[1])
#else
#define FREE_SLOT (!request_id_taken[0])
#endif

#if DEPTH > 1
#define ALL_IDLE(m) (s_phase[P(m, 0)] == IDLE && s_phase[P(m, 1)] == IDLE)
#else
#define ALL_IDLE(m) (s_phase[P(m, 0)] == IDLE)
#endif

/* a place is free when its bytes have been copied on */
#if BREAK_1
#define MAY_POST(m, n) (r_phase[P(m, n)] == IDLE || r_phase[P(m, n)] == COPY)
#else
#define MAY_POST(m, n) (r_phase[P(m, n)] == IDLE)
#endif

proctype sender(byte m)
{
    byte begun, sent, done, whose, i;
    bool not_packed;
    mtype reply_kind;

    atomic {
        started == m && FREE_SLOT ->
        if
        :: !request_id_taken[0] -> request_id_of[m] = 0
#if REQUEST_IDS > 1
        :: request_id_taken[0] && !request_id_taken[1] -> request_id_of[m] = 1
#endif
        fi;
        request_id_taken[request_id_of[m]] = true;
        started++;
        rts!m
    };
    atomic {
        reply[request_id_of[m]]?whose, reply_kind;
        assert(whose == m);
        if
        :: reply_kind == FALLBACK -> goto base_done
        :: else -> skip
        fi
    };

    /* mca_pml_umrddt_pack_step */
    do
    /* begin; copy_user */
    :: atomic {
        begun < CHUNKS && s_phase[P(m, begun)] == IDLE ->
        s_chunk[P(m, begun)] = begun;
        if
        :: not_packed -> s_bytes[P(m, begun)] = EMPTY; s_phase[P(m, begun)] = READY
        :: else -> s_bytes[P(m, begun)] = m + 1; s_phase[P(m, begun)] = COPY
        fi;
        begun++
      }
    /* look_at_copy */
    :: atomic {
        s_phase[P(m, 0)] == COPY ->
        if
        :: s_phase[P(m, 0)] = READY
        :: s_bytes[P(m, 0)] = EMPTY; not_packed = true; s_phase[P(m, 0)] = READY
        fi
      }
#if DEPTH > 1
    :: atomic {
        s_phase[P(m, 1)] == COPY ->
        if
        :: s_phase[P(m, 1)] = READY
        :: s_bytes[P(m, 1)] = EMPTY; not_packed = true; s_phase[P(m, 1)] = READY
        fi
      }
#endif
    /* post_send: in order; the last one is synchronous, any other may be held by the base PML */
    :: atomic {
        sent < begun && s_phase[P(m, sent)] == READY ->
        i = s_bytes[P(m, sent)];
        s_phase[P(m, sent)] = WIRE;
        if
        :: data[request_id_of[m]]!m, sent, i, P(m, sent) + 1
#if !BREAK_2
        :: sent + 1 < CHUNKS ->
#else
        :: true ->
#endif
            data[request_id_of[m]]!m, sent, i, 0;
            s_phase[P(m, sent)] = IDLE
        fi;
        sent++
#if BREAK_3
        ;
        if
        :: i == EMPTY -> goto not_all /* why go on, if the receiver cannot use it? */
        :: else -> skip
        fi
#endif
      }
    :: atomic {
        sent == CHUNKS && ALL_IDLE(m) -> break
      }
    od;
not_all:
    if
    :: !not_packed -> goto drain
    :: else -> skip
    fi;
    /* FAILED: the receiver has seen it, and selects the base PML; or has failed, too */
    atomic {
        reply[request_id_of[m]]?whose, reply_kind;
        assert(whose == m && reply_kind == FALLBACK)
    };
base_done:
    data[request_id_of[m]]!m, WHOLE, m + 1, 0;
drain:
    atomic { request_id_taken[request_id_of[m]] = false; drained++ }
}

/* The base PML: the first send goes to the first posted receive. */
proctype base_pml(byte slot)
{
    byte m, chunk, bytes, at, whose, wanted, place;

end_base:
    do
    :: atomic {
        nempty(data[slot]) && nempty(posted[slot]) ->
        data[slot]?m, chunk, bytes, at;
        posted[slot]?whose, wanted, place;
        assert(whose == m && wanted == chunk);
        if
        :: at != 0 ->
            assert(s_phase[at - 1] == WIRE && s_chunk[at - 1] == chunk);
            s_phase[at - 1] = IDLE
        :: else -> skip
        fi;
        if
        :: wanted == WHOLE -> has_base[m] = true
        :: else ->
            assert(r_phase[place] == WIRE && r_chunk[place] == chunk);
            r_bytes[place] = bytes;
            r_phase[place] = READY
        fi
      }
    od
}

/* received, copied: a chunk that is READY goes on, one in COPY comes to its end */
inline look_at(m, n)
{
    if
    :: r_phase[P(m, n)] == READY && r_bytes[P(m, n)] == EMPTY ->
        not_packed = true;
        r_phase[P(m, n)] = IDLE;
        in_flight--
    :: r_phase[P(m, n)] == READY && r_bytes[P(m, n)] != EMPTY && (failed || not_packed) ->
        r_phase[P(m, n)] = IDLE;
        in_flight--
    :: r_phase[P(m, n)] == READY && r_bytes[P(m, n)] != EMPTY && !failed && !not_packed ->
        if
        :: r_phase[P(m, n)] = COPY
        :: failed = true; r_phase[P(m, n)] = IDLE; in_flight-- /* the engine refuses */
        fi
    :: r_phase[P(m, n)] == COPY ->
        if
        :: content[m * CHUNKS + r_chunk[P(m, n)]] = r_bytes[P(m, n)]
        :: failed = true
        fi;
        r_phase[P(m, n)] = IDLE;
        in_flight--
    fi
}

proctype receiver(byte m)
{
    byte next, in_flight, i;
    bool not_packed, failed;

    rts?eval(m);
    /* mca_pml_umrddt_pack_receive */
    if
    :: atomic { skip -> goto query_base } /* no buffers, say */
    :: skip
    fi;
    /* the first receives are posted before the CTS_PACK is sent */
    atomic {
        do
        :: next < CHUNKS && next < DEPTH ->
            r_chunk[P(m, next)] = next;
            r_phase[P(m, next)] = WIRE;
            posted[request_id_of[m]]!m, next, P(m, next);
            in_flight++;
            next++
        :: else -> break
        od;
        reply[request_id_of[m]]!m, CTS_PACK
    };

    do
    :: atomic {
        next < CHUNKS && MAY_POST(m, next) ->
        r_chunk[P(m, next)] = next;
        r_phase[P(m, next)] = WIRE;
        posted[request_id_of[m]]!m, next, P(m, next);
        in_flight++;
        next++
      }
    :: atomic { r_phase[P(m, 0)] == READY || r_phase[P(m, 0)] == COPY -> look_at(m, 0) }
#if DEPTH > 1
    :: atomic { r_phase[P(m, 1)] == READY || r_phase[P(m, 1)] == COPY -> look_at(m, 1) }
#endif
#if BREAK_4
    :: atomic { failed -> break } /* there is no use in the rest */
#endif
#if BREAK_5
    :: atomic { not_packed -> break } /* nor in what is empty */
#endif
    :: atomic { next == CHUNKS && in_flight == 0 -> break }
    od;
    if
    :: not_packed -> goto query_base
    :: !not_packed && failed -> goto lost
    :: else -> skip
    fi;
    i = 0;
    do
    :: i < CHUNKS -> assert(content[m * CHUNKS + i] == m + 1); i++
    :: else -> break
    od;
    goto over;

query_base:
    atomic {
        posted[request_id_of[m]]!m, WHOLE, 0;
        reply[request_id_of[m]]!m, FALLBACK
    };
    has_base[m];
    goto over;
lost:
    skip; /* MPI_ERR_OTHER */
over:
    completed++
}

init {
    byte i;

    atomic {
        do
        :: i < REQUEST_IDS -> run base_pml(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < MESSAGES -> run receiver(i); run sender(i); i++
        :: else -> break
        od
    };
    (completed == MESSAGES && drained == MESSAGES);
    i = 0;
    do
    :: i < REQUEST_IDS -> assert(empty(data[i]) && empty(posted[i]) && empty(reply[i])); i++
    :: else -> break
    od
}
