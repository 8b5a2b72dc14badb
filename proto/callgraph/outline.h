/* The outline of a block: its longest calls. A search for long calls does not have to decode a
 * block if the outline has the wanted calls. The outline is made while the block is replayed. That
 * costs one comparison for most calls.
 *
 * A call is at least as long as the calls within it. So the outline also has the callers of all its
 * calls, except those that were open when the block began. */
#ifndef SJ_PROTO_CALLGRAPH_OUTLINE_H
#define SJ_PROTO_CALLGRAPH_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SJ_OUTLINE_CALLS = 32, /* maximum number of ended calls */
    SJ_OUTLINE_OPEN = 256  /* maximum number of calls that are open at the block's end */
};

/* A value beside those of sj_ending: the call is still open at the block's end. */
enum { SJ_NOT_ENDED = 4 };

typedef struct sj_outline_call {
    uint64_t call_index; /* number in the stream */
    uint64_t start_ticks;
    uint64_t duration_ticks; /* 0 for open calls */
    uint64_t self_ticks;     /* 0 for open calls */
    uint32_t function;       /* session-wide id */
    uint32_t depth;          /* number of recorded calls around it */
    uint32_t ending;         /* sj_ending or SJ_NOT_ENDED */
    uint32_t flags;          /* sj_call_flag; 0 for open calls */
} sj_outline_call;

typedef struct sj_outline {
    /* Calls that were entered and ended in the block and are longer than `floor_ticks`. Then calls
     * that were entered in it and are open at its end. */
    sj_outline_call calls[SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN];
    size_t call_count;
    uint64_t floor_ticks;
    /* false: more than SJ_OUTLINE_OPEN calls were open, and `calls` has no open call */
    bool has_all_open;
} sj_outline;

/* Adds a call that is longer than `floor_ticks`. Until sj_outline_finish, `calls` is a heap with
 * the shortest call on top. */
void sj_outline_add(sj_outline *outline, const sj_outline_call *call);

/* Returns the longest duration of the calls added so far, in ticks; 0 if none was added. */
uint64_t sj_outline_longest(const sj_outline *outline);

/* Completes the outline: keeps the calls longer than the floor, adds the `open` calls and sorts all
 * by entry. */
void sj_outline_finish(sj_outline *outline, const sj_outline_call *open, size_t open_count);

/* Keeps at most `most` ended calls of a finished outline, the longest, and all open calls. */
void sj_outline_shorten(sj_outline *outline, size_t most);

#endif
