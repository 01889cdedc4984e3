/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* All of pml/umrddt in one process: start-up, and the check that no resource is left over. */

#include "world.h"

#include <mpi.h>
#include <signal.h>
#include <time.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

world_t world;
ompi_datatype_t *world_types[WORLD_TYPES];

static unsigned char *buffers[WORLD_BUFFERS];

/* As the parameters are without an input. */
static size_t usual_pack_min;
static unsigned usual_imports;

/* Replacements for functions by which the component finds its environment. */
void __wrap_mca_pml_umrddt_hca_open(void);
void __wrap_mca_pml_umrddt_gpu_open(void);
void __real_mca_pml_umrddt_gpu_open(void);
bool __wrap_mca_pml_umrddt_publish(void);
void __wrap_opal_output(int id, const char *format, ...);

void __wrap_mca_pml_umrddt_hca_open(void)
{
    mca_pml_umrddt.hca = &world_hca;
    mca_pml_umrddt.caps = &world_caps;
}

/* What there is of it is found now; whether there is any is each input's to say. */
void __wrap_mca_pml_umrddt_gpu_open(void)
{
    __real_mca_pml_umrddt_gpu_open();
    FUZZ_CHECK(NULL != mca_pml_umrddt.gpu);
}

bool __wrap_mca_pml_umrddt_publish(void)
{
    mca_pml_umrddt.self.version = MCA_PML_UMRDDT_WIRE_VERSION;
    memset(mca_pml_umrddt.self.cookie, 0x11, sizeof(mca_pml_umrddt.self.cookie));
    return true;
}

/* What is said of wrong packets is not looked at. */
void __wrap_opal_output(int id, const char *format, ...)
{
    (void) id;
    (void) format;
}

static void types_make(void)
{
    MPI_Datatype row;
    int lengths[60], slots[60];

    MPI_Type_contiguous(5000, MPI_BYTE, &world_types[0]);
    MPI_Type_vector(64, 16, 48, MPI_BYTE, &world_types[1]);
    for (int i = 0; i < 60; ++i) {
        lengths[i] = 1 + i * 7 % 97;
        slots[i] = i * 150 + i % 13;
    }
    MPI_Type_indexed(60, lengths, slots, MPI_BYTE, &world_types[2]);
    /* large enough for stripes */
    MPI_Type_vector(20, 100, 150, MPI_BYTE, &row);
    MPI_Type_create_hvector(20, 1, 4000, row, &world_types[3]);
    MPI_Type_free(&row);
    /* less than an envelope */
    MPI_Type_vector(4, 8, 16, MPI_BYTE, &world_types[4]);
    for (int i = 0; i < WORLD_TYPES; ++i) {
        MPI_Type_commit(&world_types[i]);
    }
}

static void peer_make(void)
{
    static opal_proc_t proc; /* rank 1 */
    mca_pml_umrddt_peer_t *peer = calloc(1, sizeof(*peer));
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(MPI_COMM_WORLD);

    FUZZ_CHECK(NULL != peer && NULL != comm);
    OBJ_CONSTRUCT(&peer->credit, opal_list_t);
    OBJ_CONSTRUCT(&peer->in_credit, opal_list_item_t);
    memcpy(&proc, &ompi_proc_local()->super, sizeof(proc));
    proc.proc_name.vpid = 1;
    peer->proc = &proc;
    peer->capable = peer->has_hca = true;
    memset(peer->cookie, 0x22, sizeof(peer->cookie));
    comm->peers = calloc(2, sizeof(*comm->peers));
    FUZZ_CHECK(NULL != comm->peers);
    comm->peers[1] = peer;
    comm->peer_count = 2;
    FUZZ_CHECK(OPAL_SUCCESS
               == opal_hash_table_set_value_ptr(&mca_pml_umrddt.peers, &peer->proc->proc_name,
                                                sizeof(peer->proc->proc_name), peer));
    mca_pml_umrddt.counters.peers_now = 1;
    world.comm = comm;
    world.peer = peer;
}

/* Once: MPI, the types, the component. */
static void init(void)
{
    static mca_pml_base_module_t found;
    int provided;

    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_opal_event_include", "poll", 0);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
    /* Open MPI's own, which keep those of whoever looks at crashes away */
    signal(SIGABRT, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    world_gpu_open();
    types_make();
    for (int i = 0; i < WORLD_BUFFERS; ++i) {
        buffers[i] = calloc(1, WORLD_ROOM);
        FUZZ_CHECK(NULL != buffers[i]);
    }

    found = mca_pml;
    mca_pml = world_host;
    mca_pml_umrddt_params_register();
    mca_pml_umrddt.params.memory = MCA_PML_UMRDDT_MEMORY_ALL;
    mca_pml_umrddt_interpose();
    mca_pml_umrddt.host_keeps = false;
    FUZZ_CHECK(OMPI_SUCCESS == mca_pml.pml_enable(true));
    mca_pml_umrddt.params.memory = MCA_PML_UMRDDT_MEMORY_ALL;
    FUZZ_CHECK(mca_pml_umrddt.usable);
    usual_pack_min = mca_pml_umrddt.params.pack_min;
    usual_imports = mca_pml_umrddt.params.ipc_imports;
    FUZZ_CHECK(OMPI_SUCCESS == mca_pml.pml_add_comm(MPI_COMM_WORLD));
    peer_make();
    /* from here on only this program calls MPI or progress */
    mca_pml = found;
}

unsigned char *world_buffer(uint32_t i)
{
    return world.gpu && 0 != (i & 4) ? world_gpu_buffer(i) : buffers[i % WORLD_BUFFERS];
}

size_t world_flat_of(uint32_t type, unsigned char *flat, size_t room)
{
    opal_iov_cache_form_t *form;
    size_t length;

    FUZZ_CHECK(OPAL_SUCCESS == opal_iov_cache_form_create(&world_types[type]->super, 1, &form));
    length = opal_iov_cache_form_flatten(form, flat, room);
    opal_iov_cache_form_free(form);
    FUZZ_CHECK(length <= room);
    return length;
}

size_t world_flat(fuzz_bytes_t *input, unsigned char *flat, size_t room)
{
    uint32_t which = fuzz_below(input, WORLD_TYPES + 1);
    const uint8_t *bytes;
    size_t length;

    if (WORLD_TYPES == which) {
        length = fuzz_take(input, fuzz_byte(input), &bytes);
        memcpy(flat, bytes, length);
        return length;
    }
    return world_flat_of(which, flat, room);
}

/* Whether there are GPUs, and how they are used. */
static void begin_gpu(fuzz_bytes_t *input, uint8_t first)
{
    static const struct {
        int scheme;
        uint16_t schemes;
    } schemes[] = {
        {MCA_PML_UMRDDT_SCHEME_IPC, MCA_PML_UMRDDT_BIT_IPC},
        {MCA_PML_UMRDDT_SCHEME_AUTO, MCA_PML_UMRDDT_BITS_ALL},
        {MCA_PML_UMRDDT_SCHEME_PACK_STAGED, MCA_PML_UMRDDT_BIT_PACK_STAGED},
        {MCA_PML_UMRDDT_SCHEME_PACK_GDR, MCA_PML_UMRDDT_BIT_PACK_GDR},
    };
    uint8_t flags = world.gpu ? fuzz_byte(input) : 0;

    mca_pml_umrddt.gpu = world.gpu ? world_gpu_driver() : NULL;
    mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_BITS_PACK;
    if (world.gpu) {
        uint32_t scheme = first % (sizeof(schemes) / sizeof(schemes[0]));

        mca_pml_umrddt.schemes |= MCA_PML_UMRDDT_BIT_IPC;
        world.comm->scheme = schemes[scheme].scheme;
        world.comm->schemes = schemes[scheme].schemes;
    }
    mca_pml_umrddt.base_gpu =
        world.gpu && 0 == (flags & 1) ? MCA_PML_UMRDDT_BASE_GPU_NONE : MCA_PML_UMRDDT_BASE_GPU_ALL;
    mca_pml_umrddt.takes_contiguous = world.gpu && 0 != (flags & 2);
    mca_pml_umrddt.contiguous_from = mca_pml_umrddt.params.min_size;
    mca_pml_umrddt.looks =
        MCA_PML_UMRDDT_BASE_GPU_NONE == mca_pml_umrddt.base_gpu || mca_pml_umrddt.takes_contiguous;
    mca_pml_umrddt.params.pack_min = 0 != (flags & 4) ? 1 : usual_pack_min;
    mca_pml_umrddt.params.ipc_imports = 0 != (flags & 8) ? 1 : usual_imports;
    mca_pml_umrddt.params.ipc_done_flags = 0 == (flags & 16);
    (void) mca_pml_umrddt_scheme_ipc.open();
    world.slow_copies = 0 != (flags & 32);
    world.hca_on_gpu = 0 != (flags & 64);
    world.peer->has_gpu = world.peer->same_host = world.gpu && 0 == (flags & 128);
}

/* Each read of the clock is a microsecond later, so that an input has the same result each time; by
 * measured times, all schemes are equal. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void) clock;
    ++world.microseconds;
    time->tv_sec = (time_t) (world.microseconds / 1000000);
    time->tv_nsec = (long) (world.microseconds % 1000000 * 1000);
    return 0;
}

/* Whether the model decides: by its defaults, of messages that are thought to repeat or not. */
static void begin_tuning(uint8_t first)
{
    static char defaults[] = "defaults";

    mca_pml_umrddt_select_close();
    memset(world.peer->states, 0, sizeof(world.peer->states));
    mca_pml_umrddt.params.reuse = 0 != (first & 4) ? 1000 : 1;
    world.microseconds = 0;
    mca_pml_umrddt.params.model = defaults;
    memset(&mca_pml_umrddt.offers, 0, sizeof(mca_pml_umrddt.offers));
    if (248 <= first) {
        mca_pml_umrddt_select_open(false);
    }
}

/* Before an input: the parameters it begins with. Everything is as after init. */
static void begin(fuzz_bytes_t *input)
{
    static const struct {
        int scheme;
        uint16_t schemes;
    } schemes[] = {
        {MCA_PML_UMRDDT_SCHEME_AUTO, MCA_PML_UMRDDT_BITS_ALL},
        {MCA_PML_UMRDDT_SCHEME_UMR, MCA_PML_UMRDDT_BIT_UMR},
        {MCA_PML_UMRDDT_SCHEME_DIRECT, MCA_PML_UMRDDT_BIT_DIRECT},
        {MCA_PML_UMRDDT_SCHEME_PACK_STAGED, MCA_PML_UMRDDT_BIT_PACK_STAGED},
        {MCA_PML_UMRDDT_SCHEME_PACK_HOST, MCA_PML_UMRDDT_BIT_PACK_HOST},
    };
    const uint32_t count = sizeof(schemes) / sizeof(schemes[0]);
    uint8_t first = fuzz_byte(input), flags = fuzz_byte(input);
    uint32_t scheme = first % count;

    world.comm->scheme = schemes[scheme].scheme;
    world.comm->schemes = schemes[scheme].schemes;
    if (MCA_PML_UMRDDT_BIT_PACK_STAGED == schemes[scheme].schemes && 0 != (flags & 128)) {
        world.comm->scheme = MCA_PML_UMRDDT_SCHEME_PACK_GDR;
        world.comm->schemes = MCA_PML_UMRDDT_BIT_PACK_GDR;
    }
    mca_pml_umrddt.params.pack_hca = 0 == (first / count & 1);
    world.late = 0 != (flags & 1);
    world.slow_keys = 0 != (flags & 2);
    mca_pml_umrddt.stripe_from = 0 != (flags & 4) ? 8192 : SIZE_MAX;
    /* (existing records have the same size with either) */
    mca_pml_umrddt.params.max_keys = 0 != (flags & 8) ? 3 : MCA_PML_UMRDDT_MAX_REGIONS;
    mca_pml_umrddt.params.mkey_cache = 0 == (flags & 16);
    mca_pml_umrddt.params.pack_chunk_floor = 0 != (flags & 32) ? 1024 : 65536;
    world.peer->has_hca = 0 == (flags & 64);
    /* (so inputs from before there were any mean what they did) */
    world.gpu = 240 <= first;
    begin_gpu(input, first);
    memset(mca_pml_umrddt.received, 0, 512 * 4 * 8);
    begin_tuning(first);
}

void world_progress(bool notice)
{
    if (notice) {
        mca_pml_umrddt.ticks = 1023;
    }
    (void) mca_pml_umrddt_progress();
}

/* The component's own invariants. */
static void check(void)
{
    const char *wrong = mca_pml_umrddt_state_check();

    if (NULL != wrong) {
        fprintf(stderr, "an invariant does not hold: %s\n", wrong);
        abort();
    }
}

/* After an input, when all its requests are complete and freed: no resource is left over. */
static void end(void)
{
    mca_pml_umrddt_peer_t *peer = world.peer;

    /* registered as long as they are cached for the next message */
    mca_pml_umrddt_pack_buffers_close();
    check();
    FUZZ_CHECK(0 == world.request_count && 0 == world.requests_now);
    FUZZ_CHECK(0 == world.keysets_now && 0 == world.memories_now && 0 == world.puts_now);
    FUZZ_CHECK(0 == mca_pml_umrddt.active && 0 == mca_pml_umrddt.waits);
    FUZZ_CHECK(NULL == mca_pml_umrddt.events && opal_list_is_empty(&mca_pml_umrddt.receives));
    FUZZ_CHECK(0 == mca_pml_umrddt.fins.used);
    for (uint32_t i = 0; i < mca_pml_umrddt.request_ids.words; ++i) {
        FUZZ_CHECK(UINT64_MAX == mca_pml_umrddt.request_ids.free[i]);
    }
    world.notice_length = 0;
    mca_pml_umrddt_unlisten(world.comm);
    free(world.comm->hints);
    world.comm->hints = NULL;
    world.comm->keeps = false;
    world.comm->gate.word &= ~UMRDDT_GATE_KEEPS;
    mca_pml_umrddt_sets_free(peer);
    mca_pml_umrddt_flats_free(peer);
    mca_pml_umrddt_ipc_free(peer);
    FUZZ_CHECK(0 == mca_pml_umrddt.counters.direct_bytes_now
               && 0 == mca_pml_umrddt.counters.ipc_layout_bytes_now);
    if (peer->waits_for_credit) {
        opal_list_remove_item(&mca_pml_umrddt.credit, &peer->in_credit);
        peer->waits_for_credit = false;
    }
    peer->endpoint = NULL;
    peer->sets_there.clock = peer->flats_there.clock = 0;
    peer->states[MCA_PML_UMRDDT_SCHEME_IPC].fails = 0;
    peer->rings = false;
    peer->reach = 0;
    world_hca_reset();
    world_gpu_reset();
    world = (world_t){.comm = world.comm, .peer = peer};
}

void world_refuse(fuzz_bytes_t *input, uint32_t kinds)
{
    uint32_t *const refused[] = {&world.refuse_sends,   &world.refuse_recvs,  &world.refuse_keys,
                                 &world.refuse_memory,  &world.refuse_fins,   &world.refuse_copies,
                                 &world.refuse_imports, &world.refuse_engines};
    uint32_t count = 1 + fuzz_below(input, 3);

    *refused[fuzz_below(input, world.gpu ? 8 : kinds)] = count;
}

void world_refuse_none(void)
{
    world.refuse_sends = world.refuse_recvs = world.refuse_fins = 0;
    world.refuse_keys = world.refuse_memory = 0;
    world.refuse_copies = world.refuse_imports = world.refuse_engines = 0;
}

/* (The order of evaluation of arguments depends on the compiler.) */
static void end_one(fuzz_bytes_t *input, bool (*done)(uint32_t, int))
{
    uint8_t which = fuzz_byte(input);
    bool well = fuzz_byte(input) & 1;

    (void) done(which, well ? OPAL_SUCCESS : OPAL_ERROR);
}

void world_put_end(fuzz_bytes_t *input)
{
    end_one(input, world_put_done);
}

void world_keyset_end(fuzz_bytes_t *input)
{
    end_one(input, world_keyset_done);
}

void world_copy_end(fuzz_bytes_t *input)
{
    end_one(input, world_copy_done);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void) argc;
    world_gpu_begin(*argv);
    init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes_t input = {data, size};

    begin(&input);
    world_target.begin();
    for (uint32_t steps = 0; 0 < input.left && 300 > steps; ++steps) {
        world_target.step(&input);
        (void) world_target.all_over();
        check();
    }
    world_target.drain();
    end();
    return 0;
}
