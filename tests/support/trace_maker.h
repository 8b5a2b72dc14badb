/* Databases for tests of everything that reads: random call streams, written as real blocks, with
 * the calls kept as a plain list to compare with. */
#ifndef SJ_TESTS_SUPPORT_TRACE_MAKER_H
#define SJ_TESTS_SUPPORT_TRACE_MAKER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct made_call {
    int64_t call_id, session_id, stream_id, thread_id, function_id;
    int64_t parent_id;          /* -1: none */
    int64_t caller_function_id; /* -1: none */
    int64_t depth;
    int64_t start_ns, end_ns, self_ns; /* end_ns -1: open */
    int64_t tail_caller_id;            /* -1: none */
    int64_t physical_parent_id;        /* -1: none */
    int64_t left_ns;                   /* by a tail call; -1: not, or not told */
    int ending;
} made_call;

typedef struct trace_shape {
    uint64_t seed;
    int sessions;
    int streams;    /* per session */
    uint32_t calls; /* per stream */
    uint32_t block_events;
    uint32_t functions; /* per module; two modules a session */
    uint32_t max_depth;
    bool regular;    /* functions call mostly the same ones in turn, as programs do */
    bool leave_open; /* calls stay open at the end of each stream */
    bool keep_calls; /* fill `calls` */
    bool tail_calls; /* some calls end by a jump to another; not with `regular` */
} trace_shape;

typedef struct trace {
    made_call *calls;
    size_t count, capacity;
    size_t blocks;
    size_t outlines; /* of blocks */
} trace;

/* make_trace writes a database of the schema at `path` (replaced); exits the test on failure. */
void make_trace(const char *path, const trace_shape *shape, trace *made);
void free_trace(trace *made);

/* The next number of a small repeatable generator. */
uint64_t next_random(uint64_t *state);

#endif
