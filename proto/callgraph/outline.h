/* The outline of a block: its longest calls. Who looks for such need not decode a block whose
 * outline has them all. Found while the block is replayed: most calls cost one comparison.
 *
 * A call that lies in one of the outline's is shorter than it, or as long: so the callers of all
 * calls of an outline are in it, too, or were open when the block began. */
#ifndef SJ_PROTO_CALLGRAPH_OUTLINE_H
#define SJ_PROTO_CALLGRAPH_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SJ_OUTLINE_CALLS = 32, /* longest ones */
    SJ_OUTLINE_OPEN = 256  /* calls open at the end */
};

/* In the place of an sj_ending: the end of the call is not known here. */
enum { SJ_NOT_ENDED = 4 };

typedef struct sj_outline_call {
    uint64_t call_index; /* within the stream */
    uint64_t start_ticks;
    uint64_t duration_ticks; /* 0 of open ones, as is self_ticks */
    uint64_t self_ticks;
    uint32_t function; /* session-wide id */
    uint32_t depth;    /* calls below it; 0: called by nothing recorded */
    uint32_t ending;   /* sj_ending; SJ_NOT_ENDED: it was open at the end of the block */
    uint32_t flags;    /* sj_call_flag; not of open ones */
} sj_outline_call;

typedef struct sj_outline {
    /* calls that were entered and ended in the block and are longer than `floor_ticks`, and those
     * that were entered in it and were open at its end */
    sj_outline_call calls[SJ_OUTLINE_CALLS + SJ_OUTLINE_OPEN];
    size_t call_count;
    uint64_t floor_ticks;
    bool has_all_open; /* else more were open at the end than it has room for */
} sj_outline;

/* sj_outline_add takes a call that is longer than `floor_ticks`. While the outline is made, the
 * first SJ_OUTLINE_CALLS are a heap, the shortest on top. */
void sj_outline_add(sj_outline *outline, const sj_outline_call *call);

/* sj_outline_longest returns the greatest duration of the calls that it was given. */
uint64_t sj_outline_longest(const sj_outline *outline);

/* sj_outline_finish ends the making: leaves calls that are longer than the floor, adds what was
 * `open`, and puts all in the order of their entries. */
void sj_outline_finish(sj_outline *outline, const sj_outline_call *open, size_t open_count);

/* sj_outline_shorten keeps the `most` longest calls of a finished outline, and the open ones. */
void sj_outline_shorten(sj_outline *outline, size_t most);

#endif
