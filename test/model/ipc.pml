/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Handled messages from GPU memory of the same node, which the receiver reads:
 * pml_umrddt_ipc_scheme.c and umrddt_done_flag.c, in Promela; message.pml has the others, and says how to read both.
 *
 * Left open here: whether a message's buffer is the one before it or a new one, freed and allocated anew
 * as soon as MPI allows; whether the driver maps it; whether a copy fails; when an unused mapping is
 * closed; and which messages have the same request id.
 *
 * What must hold, in every run:
 *   - the receiver reads an allocation only while it lives, and only for a message whose send is not complete;
 *   - it reads the allocation that the message's envelope names;
 *   - a sender receives only flags and replies of its own message, whatever its request id was used for before;
 *   - every message is complete once at each side, and nothing is left over.
 */

#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef REQUEST_IDS
#define REQUEST_IDS 1
#endif
#ifndef IMPORTS
#define IMPORTS 1 /* pml_umrddt_ipc_imports */
#endif

mtype = { INFO_REQ, FALLBACK, ACK };                           /* mca_pml_umrddt_reply_kind_t */
mtype = { FLAG_NOT, FLAG_DONE, FLAG_REPLY };           /* opal_umrddt_done_flag_state_t */
mtype = { IDLE, LOOK, OTHER, WAIT_INFO, COPY, BY_BASE, COMPLETE };

#define REQUEST_ID(m) request_id_of[m]

chan rts = [MESSAGES] of { byte, byte, bool };         /* message, BUFFER_ID, flag */
chan reply[REQUEST_IDS] = [2] of { byte, mtype, bool };      /* message, reply_kind, CAN_SET_FLAG */
chan info[REQUEST_IDS] = [2] of { byte, byte };              /* message, BUFFER_ID of the export, 0: refused */
chan fail_notice[MESSAGES] = [1] of { bool };
chan data[MESSAGES] = [1] of { byte };

byte done_flag_of[REQUEST_IDS];               /* the word: message + 1, */
mtype done_flag_what[REQUEST_IDS] = FLAG_NOT; /* and what */

/* ---- The sender ---- */

bool request_id_taken[REQUEST_IDS];
byte request_id_of[MESSAGES];
byte id_of[MESSAGES];    /* the BUFFER_ID of its allocation */
bool s_done[MESSAGES];
bool sets_flags;              /* peer->sets_flags: the receiver has mapped the completion flags */
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

#if REQUEST_IDS > 1
#define FREE_SLOT (!request_id_taken[0] || !request_id_taken[1])
#else
#define FREE_SLOT (!request_id_taken[0])
#endif

/* a mapping is found by BUFFER_ID, never by address */
#if BREAK_3
#define IS_OF(id) (import_id != 0)
#else
#define IS_OF(id) (import_id == id)
#endif

/* the word has the number of the message */
#if BREAK_2
#define IS_MINE(m) true
#else
#define IS_MINE(m) (done_flag_of[request_id_of[m]] == m + 1)
#endif

inline ring(m, what)
{
    done_flag_of[REQUEST_ID(m)] = m + 1;
    done_flag_what[REQUEST_ID(m)] = what
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

inline by_base(m, done_flag, held)
{
    import_release(held);
    r_state[m] = BY_BASE;
    reply[REQUEST_ID(m)]!m, FALLBACK, false;
    announce(m, done_flag)
}

/* peer->info_req */
#define INFO_REQ_ACTIVE \
    ((m != 0 && r_state[0] == WAIT_INFO) || (m != 1 && r_state[1] == WAIT_INFO) \
     || (m != MESSAGES - 1 && r_state[MESSAGES - 1] == WAIT_INFO))

proctype receiver(byte m)
{
    byte id, held, reported, whose;
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
        reply[REQUEST_ID(m)]!m, ACK, done_flags;
#endif
        r_state[m] = COPY
      }
    /* refused before, or the engine refuses */
    :: atomic { r_state[m] == LOOK -> by_base(m, done_flag, held) }
    /* the HCA or a packed scheme, which was offered, too: said at the completion flag at once, and answered later. What matters of these ways here is
       that an answer comes by the base PML, and then data: as by the base PML */
    :: atomic {
        r_state[m] == LOOK && held == 0 -> r_state[m] = OTHER;
#if !BREAK_4
        announce(m, done_flag)
#endif
      }
    :: atomic { r_state[m] == OTHER -> r_state[m] = BY_BASE; reply[REQUEST_ID(m)]!m, FALLBACK, false }
    /* send INFO_REQ, one message at a time */
    :: atomic {
        r_state[m] == LOOK && held == 0 && import_id != id && !INFO_REQ_ACTIVE ->
        r_state[m] = WAIT_INFO;
        reply[REQUEST_ID(m)]!m, INFO_REQ, false;
        announce(m, done_flag)
      }
    :: atomic {
        r_state[m] == WAIT_INFO && nempty(info[REQUEST_ID(m)]) ->
        info[REQUEST_ID(m)]?reported, held;
        assert(reported == m);
        done_flags = true; /* peer->done_flags */
        if
        :: held == 0 -> by_base(m, done_flag, held)
        :: held != 0 -> held = 0; by_base(m, done_flag, held) /* the driver does not map it */
        :: held != 0 ->
            assert(held == id);
            /* the least recently used mapping without a reader is closed */
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
        :: by_base(m, done_flag, held)
        :: skip ->
            import_release(held);
            r_state[m] = COMPLETE;
            completed++;
            if
            :: done_flag -> ring(m, FLAG_DONE)
            :: else -> reply[REQUEST_ID(m)]!m, ACK, done_flags
            fi
        fi
      }
    :: atomic {
        r_state[m] == BY_BASE && nempty(data[m]) -> data[m]?whose;
        r_state[m] = COMPLETE;
        completed++
      }
    :: atomic {
        fail_notice[m]?in_flight ->
        if
        :: r_state[m] == LOOK || r_state[m] == WAIT_INFO || r_state[m] == OTHER -> by_base(m, done_flag, held)
        :: r_state[m] == BY_BASE || r_state[m] == COMPLETE -> reply[REQUEST_ID(m)]!m, ACK, false
        :: r_state[m] == COPY -> skip
        fi
      }
    od
}

proctype sender(byte m)
{
    byte whose;
    mtype reply_kind;
    bool done_flag, can_set_flag;

    /* The application: memory is freed only when no send from it is under way. Then mca_pml_umrddt_send_start */
    atomic {
        started == m && FREE_SLOT ->
        if
        :: !request_id_taken[0] -> request_id_of[m] = 0
#if REQUEST_IDS > 1
        :: request_id_taken[0] && !request_id_taken[1] -> request_id_of[m] = 1
#endif
        fi;
        request_id_taken[request_id_of[m]] = true;
        if
        :: uses == 0 -> ids++; lives = ids
        :: skip
        fi;
        uses++;
        id_of[m] = lives;
        done_flag = sets_flags;
        started++;
        rts!m, lives, done_flag
    };

    /* tier */
    atomic {
        !done_flag || (done_flag_what[request_id_of[m]] != FLAG_NOT && IS_MINE(m)) ->
        if
        :: done_flag && done_flag_what[request_id_of[m]] == FLAG_DONE -> goto finish
        :: else -> skip
        fi
    };

REPLY:
    atomic {
        reply[request_id_of[m]]?whose, reply_kind, can_set_flag ->
        if
        :: whose != m -> goto REPLY
        :: whose == m && reply_kind == FALLBACK -> goto await_base
        :: whose == m && reply_kind == ACK && can_set_flag -> sets_flags = true; goto finish
        :: whose == m && reply_kind == ACK && !can_set_flag -> goto finish
        :: whose == m && reply_kind == INFO_REQ ->
            if
            :: info[request_id_of[m]]!m, id_of[m]; goto REPLY
            :: info[request_id_of[m]]!m, 0; goto REPLY /* the driver exports it not */
            :: fail_notice[m]!false /* no memory */
            fi
        fi
    };

FAILED:
    atomic {
        reply[request_id_of[m]]?whose, reply_kind, can_set_flag ->
        if
        :: whose != m -> goto FAILED
        :: whose == m && reply_kind == FALLBACK -> goto await_base
        :: whose == m && reply_kind == ACK -> goto finish
        fi
    };

await_base:
    data[m]!m;
finish:
    atomic {
        s_done[m] = true;
        request_id_taken[request_id_of[m]] = false;
        uses--;
        drained++
    }
}

/* The import cache closes unused imports. */
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
