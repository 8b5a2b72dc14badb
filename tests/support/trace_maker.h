/* Databases for tests of all readers. They hold random call streams as real blocks. The calls are
 * also kept as a plain list for comparison. */
#ifndef SJ_TESTS_SUPPORT_TRACE_MAKER_H
#define SJ_TESTS_SUPPORT_TRACE_MAKER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct made_call {
    int64_t call_id, session_id, stream_id, thread_id, function_id;
    int64_t parent_id;          /* -1: no parent */
    int64_t caller_function_id; /* -1: no caller */
    int64_t depth;
    int64_t start_ns, end_ns, self_ns; /* end_ns is -1 if the call is open */
    int64_t tail_caller_id;            /* -1: not entered by a tail call */
    int64_t physical_parent_id;        /* -1: no parent */
    /* when the call left by a tail call; -1: it did not, or the trace does not say */
    int64_t left_ns;
    int ending;
} made_call;

typedef struct trace_shape {
    uint64_t seed;
    int sessions;
    int streams;    /* number of streams per session */
    uint32_t calls; /* number of calls per stream */
    uint32_t block_events;
    uint32_t functions; /* number of functions per module; each session has two modules */
    uint32_t max_depth;
    bool regular;    /* functions mostly call the same callees in turn, as real programs do */
    bool leave_open; /* some calls stay open at the end of each stream */
    bool keep_calls; /* fill `calls` */
    bool tail_calls; /* some calls end with a jump to another call; not together with `regular` */
} trace_shape;

typedef struct trace {
    made_call *calls;
    size_t count, capacity;
    size_t blocks;
    size_t outlines; /* number of blocks that have an outline */
} trace;

/* Writes a database with the current schema to `path` and replaces an existing file. Exits the test
 * on failure. */
void make_trace(const char *path, const trace_shape *shape, trace *made);
void free_trace(trace *made);

/* Returns the next number of a small repeatable generator. */
uint64_t next_random(uint64_t *state);

#endif
