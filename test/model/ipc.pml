/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Taken messages from GPU memory of the same host, which the receiver reads:
 * pml_umrddt_ipc_scheme.c and umrddt_done_flag.c, in Promela; message.pml has the others, and says how to read both.
 *
 * Left open here: whether a message's buffer is the one before it or a new one, freed and allocated anew
 * as soon as MPI allows; whether the driver maps it; whether a copy fails; when an unused mapping is
 * closed; and which messages have the same slot.
 *
 * What must hold, in every run:
 *   - the receiver reads an allocation only while it lives, and only for a message whose send is not complete;
 *   - what it reads is the allocation that the message's envelope names;
 *   - a sender hears only what was tier or answered for its own message, whatever its slot served before;
 *   - every message is complete once at each side, and nothing is left over.
 */

#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef IMPORTS
#define IMPORTS 1 /* pml_umrddt_ipc_imports */
#endif

mtype = { ASK, HOST, DONE };                           /* mca_pml_umrddt_reply_kind_t */
mtype = { FLAG_NOT, FLAG_DONE, FLAG_REPLY };           /* opal_umrddt_done_flag_state_t */
mtype = { IDLE, LOOK, OTHER, ASKED, COPY, BY_HOST, COMPLETE };

#define SLOT(m) slot_of[m]

chan rts = [MESSAGES] of { byte, byte, bool };         /* message, BUFFER_ID, flag */
chan reply[SLOTS] = [2] of { byte, mtype, bool };      /* message, verdict, CAN_RING */
chan tell[SLOTS] = [2] of { byte, byte };              /* message, BUFFER_ID of the export, 0: refused */
chan fail_notice[MESSAGES] = [1] of { bool };
chan data[MESSAGES] = [1] of { byte };

byte done_flag_of[SLOTS];               /* the word: message + 1, */
mtype done_flag_what[SLOTS] = FLAG_NOT; /* and what */

/* ---- The sender ---- */

bool slot_taken[SLOTS];
byte slot_of[MESSAGES];
byte id_of[MESSAGES];    /* the BUFFER_ID of its allocation */
bool s_done[MESSAGES];
bool rings;              /* peer->rings: the receiver has mapped the completion flags */
byte ids = 1;            /* BUFFER_IDs are never given twice */
byte lives = 1;          /* the allocation that the application has */
byte uses;               /* sends from it that are not complete */
byte started, drained;

/* ---- The receiver ---- */

mtype r_state[MESSAGES] = IDLE;
bool done_flags;              /* mapped */
byte import_id;          /* the mapping that is kept; 0: none */
byte import_uses;
byte completed;

#if SLOTS > 1
#define FREE_SLOT (!slot_taken[0] || !slot_taken[1])
#else
#define FREE_SLOT (!slot_taken[0])
#endif

/* a mapping is found by BUFFER_ID, never by address */
#if BREAK_3
#define IS_OF(id) (import_id != 0)
#else
#define IS_OF(id) (import_id == id)
#endif

/* the word has the number of the message */
#if BREAK_2
#define HEARD(m) true
#else
#define HEARD(m) (done_flag_of[slot_of[m]] == m + 1)
#endif

inline ring(m, what)
{
    done_flag_of[SLOT(m)] = m + 1;
    done_flag_what[SLOT(m)] = what
}

/* mca_pml_umrddt_recv_announce */
inline announce(m, done_flag)
{
    if
    :: done_flag -> done_flag = false; ring(m, FLAG_REPLY)
    :: else -> skip
    fi
}

inline import_release(held)
{
    if
    :: held != 0 && held == import_id -> import_uses--; held = 0
    :: held != 0 && held != import_id -> held = 0 /* over the bound: it was closed at once */
    :: else -> skip
    fi
}

inline by_host(m, done_flag, held)
{
    import_release(held);
    r_state[m] = BY_HOST;
    reply[SLOT(m)]!m, HOST, false;
    announce(m, done_flag)
}

/* peer->info_req */
#define INFO_REQ_ACTIVE \
    ((m != 0 && r_state[0] == ASKED) || (m != 1 && r_state[1] == ASKED) \
     || (m != MESSAGES - 1 && r_state[MESSAGES - 1] == ASKED))

proctype receiver(byte m)
{
    byte id, held, told, whose;
    bool done_flag, in_flight;

    atomic {
        rts?eval(m), id, done_flag;
        r_state[m] = LOOK
    }

end_over:
    do
    /* look, with all that is needed: the copy begins */
    :: atomic {
        r_state[m] == LOOK && (held != 0 || IS_OF(id)) ->
        if
        :: held == 0 -> held = import_id; import_uses++
        :: else -> skip
        fi;
#if BREAK_1
        reply[SLOT(m)]!m, DONE, done_flags;
#endif
        r_state[m] = COPY
      }
    /* refused before, or the engine refuses */
    :: atomic { r_state[m] == LOOK -> by_host(m, done_flag, held) }
    /* the HCA or a packed way, which was offered, too: said at the completion flag at once, and answered later. What matters of these ways here is
       that an answer comes by the base PML, and then data: as by the host */
    :: atomic {
        r_state[m] == LOOK && held == 0 -> r_state[m] = OTHER;
#if !BREAK_4
        announce(m, done_flag)
#endif
      }
    :: atomic { r_state[m] == OTHER -> r_state[m] = BY_HOST; reply[SLOT(m)]!m, HOST, false }
    /* ask, one message at a time */
    :: atomic {
        r_state[m] == LOOK && held == 0 && import_id != id && !INFO_REQ_ACTIVE ->
        r_state[m] = ASKED;
        reply[SLOT(m)]!m, ASK, false;
        announce(m, done_flag)
      }
    :: atomic {
        r_state[m] == ASKED && nempty(tell[SLOT(m)]) ->
        tell[SLOT(m)]?told, held;
        assert(told == m);
        done_flags = true; /* peer->done_flags */
        if
        :: held == 0 -> by_host(m, done_flag, held)
        :: held != 0 -> held = 0; by_host(m, done_flag, held) /* the driver does not map it */
        :: held != 0 ->
            assert(held == id);
            /* the least recently used mapping that nobody reads is closed */
            if
            :: import_id == 0 || import_uses == 0 -> import_id = held; import_uses = 1
            :: import_id == held -> import_uses++
            :: else -> skip
            fi;
            r_state[m] = LOOK
        fi
      }
    /* copied */
    :: atomic {
        r_state[m] == COPY ->
        assert(held == id && lives == id && !s_done[m]);
        if
        :: by_host(m, done_flag, held)
        :: skip ->
            import_release(held);
            r_state[m] = COMPLETE;
            completed++;
            if
            :: done_flag -> ring(m, FLAG_DONE)
            :: else -> reply[SLOT(m)]!m, DONE, done_flags
            fi
        fi
      }
    :: atomic {
        r_state[m] == BY_HOST && nempty(data[m]) -> data[m]?whose;
        r_state[m] = COMPLETE;
        completed++
      }
    :: atomic {
        fail_notice[m]?in_flight ->
        if
        :: r_state[m] == LOOK || r_state[m] == ASKED || r_state[m] == OTHER -> by_host(m, done_flag, held)
        :: r_state[m] == BY_HOST || r_state[m] == COMPLETE -> reply[SLOT(m)]!m, DONE, false
        :: r_state[m] == COPY -> skip
        fi
      }
    od
}

proctype sender(byte m)
{
    byte whose, heard;
    mtype verdict;
    bool done_flag, can_ring;

    /* The application: memory is freed only when no send from it is under way. Then mca_pml_umrddt_send_start */
    atomic {
        started == m && FREE_SLOT ->
        if
        :: !slot_taken[0] -> slot_of[m] = 0
#if SLOTS > 1
        :: slot_taken[0] && !slot_taken[1] -> slot_of[m] = 1
#endif
        fi;
        slot_taken[slot_of[m]] = true;
        if
        :: uses == 0 -> ids++; lives = ids
        :: skip
        fi;
        uses++;
        id_of[m] = lives;
        done_flag = rings;
        started++;
        rts!m, lives, done_flag
    };

    /* tier */
    atomic {
        !done_flag || (done_flag_what[slot_of[m]] != FLAG_NOT && HEARD(m)) ->
        if
        :: done_flag && done_flag_what[slot_of[m]] == FLAG_DONE -> goto finish
        :: else -> skip
        fi
    };

REPLY:
    atomic {
        reply[slot_of[m]]?whose, verdict, can_ring ->
        if
        :: whose != m -> goto REPLY
        :: whose == m && verdict == HOST -> goto by_the_host
        :: whose == m && verdict == DONE && can_ring -> rings = true; goto finish
        :: whose == m && verdict == DONE && !can_ring -> goto finish
        :: whose == m && verdict == ASK ->
            if
            :: tell[slot_of[m]]!m, id_of[m]; goto REPLY
            :: tell[slot_of[m]]!m, 0; goto REPLY /* the driver exports it not */
            :: fail_notice[m]!false /* no memory */
            fi
        fi
    };

FAILED:
    atomic {
        reply[slot_of[m]]?whose, verdict, can_ring ->
        if
        :: whose != m -> goto FAILED
        :: whose == m && verdict == HOST -> goto by_the_host
        :: whose == m && verdict == DONE -> goto finish
        fi
    };

by_the_host:
    data[m]!m;
finish:
    atomic {
        s_done[m] = true;
        slot_taken[slot_of[m]] = false;
        uses--;
        drained++
    }
}

/* The import cache closes what nobody uses. */
proctype eviction()
{
end_eviction:
    do
    :: atomic { import_id != 0 && import_uses == 0 -> import_id = 0 }
    od
}

init {
    byte i;

    atomic {
        run eviction();
        do
        :: i < MESSAGES -> run receiver(i); run sender(i); i++
        :: else -> break
        od
    };
    (completed == MESSAGES && drained == MESSAGES);
    i = 0;
    do
    :: i < MESSAGES -> (empty(fail_notice[i])); assert(empty(data[i])); i++
    :: else -> break
    od
}
