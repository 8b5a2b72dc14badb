/* Call traces for tests and benches. An invented program runs; its raw records and the true calls
 * are kept. The real assembler makes blocks of the records. */
#ifndef SJ_TESTS_SUPPORT_CALL_TRACE_H
#define SJ_TESTS_SUPPORT_CALL_TRACE_H

#include "agent/assembler/assembler.h"

typedef struct trace_call {
    uint64_t start;
    uint64_t end;
    uint64_t child;
    uint64_t enter_event; /* event numbers in the balanced stream */
    uint64_t leave_event;
    uint32_t function;
    uint32_t parent; /* number of the caller; UINT32_MAX: no caller */
    uint32_t depth;
    uint32_t ending;
} trace_call;

typedef struct trace_shape {
    uint64_t seed;
    size_t calls;
    uint32_t functions;
    uint32_t max_depth;
    uint32_t base_depth;        /* number of outermost calls that stay open all the time */
    uint32_t throw_per_million; /* probability of a throw per event, in millionths */
    uint32_t tick_step;         /* all times are multiples of this */
    uint32_t tick_choices;      /* a gap is 0 to tick_choices - 1 steps */
    bool realistic;             /* runs a fixed program with loops instead of a random walk */
    bool leave_all;             /* all calls return at the end of the program */
} trace_shape;

typedef struct call_trace {
    trace_call *calls; /* in the sequence of their entries */
    size_t call_count;
    sj_record *records;
    size_t record_count;
    uint64_t end_ticks;
} call_trace;

call_trace trace_generate(const trace_shape *shape);
void trace_free(call_trace *trace);

uint64_t trace_random(uint64_t *state);

/* Returns one raw record. */
sj_record trace_record(sj_record_kind kind, uint32_t function, uint64_t stack, uint64_t ticks);

typedef struct stored_block {
    sj_block_header header;
    uint8_t *data;
    size_t size;
} stored_block;

/* A sink that keeps blocks. It refuses about `refuse_per_million` of a million blocks. */
typedef struct block_store {
    stored_block *blocks;
    size_t count;
    size_t capacity;
    uint32_t streams;
    uint32_t own_streams;
    uint32_t marks;
    uint32_t refuse_per_million;
    uint64_t random;
    uint64_t refused;
} block_store;

sj_assembler_sink block_store_sink(block_store *store);
void block_store_free(block_store *store);

/* Looks up frames in the DEEP_FRAMES blocks of a store. This is an sj_stack_lookup. */
sj_status block_store_lookup(void *store, uint32_t stream, uint32_t reference, uint32_t count,
                             sj_stack_frame *frames);

/* Feeds a whole trace to an assembler and finishes it. Aborts on failure. */
void trace_assemble(const call_trace *trace, uint32_t block_events, block_store *store,
                    sj_assembler_counters *counters);

enum { TRACE_STACK_LOW = 0x10000000 };
#define TRACE_STACK_HIGH UINT64_C(0x7f0000000000)

/* Sets held[n] for each event n that a CALLS block holds. n is the event's number in its stream. */
void stored_block_note_held(const stored_block *stored, sj_block_decoder *decoder, bool *held);

#endif
