/* Stub maps: which instruction of the program each byte of a stub area stands for.
 *
 * An area (agent/inproc/hooks/stubs.c) begins with trampolines, then a sj_stub_area. Its map says
 * for every byte of code behind that where the program would be without hooks, and how far the
 * stack pointer is from where it would be. Distances only, so an area may lie elsewhere in another
 * process, at the same distance from its module. The agent, tracers and unwinders read it. */
#ifndef SJ_AGENT_ABI_STUB_MAP_H
#define SJ_AGENT_ABI_STUB_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SJ_STUB_AREA_MAGIC UINT64_C(0x3150414d42545353) /* "SSTBMAP1" */

enum {
    SJ_STUB_AREA_OFFSET = 48, /* of the sj_stub_area in its area */
    SJ_STUB_STACK_BITS = 5,
    SJ_STUB_KIND_SHIFT = 30,
    SJ_STUB_STACK_WORD = 8,
    SJ_STUB_STACK_LEAST = -8,
    SJ_STUB_STACK_MOST = 8 * ((1 << SJ_STUB_STACK_BITS) - 2),
    /* Stubs of x86-64 touch the stack so far below before they call the slow path. */
    SJ_STUB_TOUCHED_BYTES = 2304,
    SJ_STUB_VALUES_TOUCHED_BYTES = 3584, /* and before they record values; less than a page */
    SJ_STUB_AREA_MOST_BYTES = 1 << (32 - SJ_STUB_STACK_BITS) /* a larger area has no map */
};

typedef enum sj_stub_kind {
    SJ_STUB_FIXED = 0,  /* a probe or a jump: stands for one instruction */
    SJ_STUB_COPY = 1,   /* copies of instructions, byte by byte */
    SJ_STUB_CALLED = 2, /* called by stubs or by the program: the caller's place counts */
    SJ_STUB_UNKNOWN = 3
} sj_stub_kind;

typedef struct sj_stub_entry {
    uint32_t
        start; /* offset in the area, above the bits of the stack's distance in words, plus 1 */
    uint32_t place; /* offset in the text, below the sj_stub_kind */
} sj_stub_entry;

typedef struct sj_stub_area {
    uint64_t magic;
    int64_t text;   /* distance from the area's first byte to what places are counted from */
    uint32_t map;   /* offset of the entries in the area */
    uint32_t count; /* of entries, rising by start; each holds until the next */
    uint32_t code_end;
    uint32_t unwind; /* offset of the index of its unwind tables (.eh_frame_hdr); 0: none */
} sj_stub_area;

/* Where an area lies. A range is published by its address, which is written last. */
typedef struct sj_stub_range {
    _Atomic uint64_t low; /* 0: free */
    _Atomic uint64_t bytes;
} sj_stub_range;

enum { SJ_STUB_RANGES = 32768 };

/* The areas of a process, in any order. Tracers find them by the agent's state. */
typedef struct sj_stub_ranges {
    _Atomic uint32_t count; /* the ranges behind it were never used: their pages take no memory */
    sj_stub_range ranges[SJ_STUB_RANGES];
} sj_stub_ranges;

/* What a byte of an area stands for. */
typedef struct sj_stub_place {
    sj_stub_kind kind;
    int32_t stack;    /* bytes from the stack pointer to where it is at the place */
    uint64_t address; /* FIXED and COPY */
} sj_stub_place;

/* Where an interrupted thread is. */
typedef struct sj_stub_state {
    uint64_t pc;
    uint64_t sp;
    uint64_t link;  /* AArch64: the link register */
    bool is_behind; /* `pc` is behind a call that is not over */
} sj_stub_state;

/* sj_stub_read copies `count` bytes at an address of the program; false: it cannot. */
typedef bool sj_stub_read(void *context, uint64_t address, void *bytes, uint32_t count);

/* sj_stub_find returns what the code at `pc` stands for. False if `pc` is not in the code of the
 * area of `bytes` at `low`, or that has no map. Async-signal-safe if `read` is. */
bool sj_stub_find(uint64_t low, uint64_t bytes, uint64_t pc, sj_stub_read *read, void *context,
                  sj_stub_place *place);

/* sj_stub_leave changes a thread's state inside the area to that which it would have in the
 * program. False if it is not inside, or its place is not known; the state is unchanged then.
 * Async-signal-safe if `read` is. */
bool sj_stub_leave(uint64_t low, uint64_t bytes, sj_stub_read *read, void *context,
                   sj_stub_state *state);

#endif
