/* Stub map: gives the program's instruction for each byte of a stub area.
 *
 * An area (agent/inproc/hooks/stubs.c) starts with trampolines, followed by a sj_stub_area. Its map
 * covers all code after that. For each byte, the map says where the program would be without hooks.
 * It also says how far the stack pointer is from its value there. The map holds distances only. So
 * an area can lie elsewhere in another process, at the same distance from its module. The agent,
 * tracers and unwinders read it. */
#ifndef SJ_AGENT_ABI_STUB_MAP_H
#define SJ_AGENT_ABI_STUB_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SJ_STUB_AREA_MAGIC UINT64_C(0x3150414d42545353) /* "SSTBMAP1" */

enum {
    SJ_STUB_AREA_OFFSET = 48, /* offset of the sj_stub_area in its area */
    SJ_STUB_STACK_BITS = 5,
    SJ_STUB_KIND_SHIFT = 30,
    SJ_STUB_STACK_WORD = 8,
    SJ_STUB_STACK_LEAST = -8,
    SJ_STUB_STACK_MOST = 8 * ((1 << SJ_STUB_STACK_BITS) - 2),
    /* Stubs access the byte this far below the stack pointer before they call the slow path, so
     * that a stack overflow faults there. */
    SJ_STUB_TOUCHED_BYTES = 2560,
    /* Stubs access the byte this far below the stack pointer before they record values. Less than a
     * page. */
    SJ_STUB_VALUES_TOUCHED_BYTES = 3584,
    SJ_STUB_AREA_MOST_BYTES = 1 << (32 - SJ_STUB_STACK_BITS) /* a larger area has no map */
};

typedef enum sj_stub_kind {
    /* a probe or a jump: all its bytes belong to one instruction of the program */
    SJ_STUB_FIXED = 0,
    SJ_STUB_COPY = 1,   /* copies of instructions, byte by byte */
    SJ_STUB_CALLED = 2, /* called by stubs or by the program: the caller determines the place */
    SJ_STUB_UNKNOWN = 3
} sj_stub_kind;

typedef struct sj_stub_entry {
    /* Low SJ_STUB_STACK_BITS bits: the stack's distance in words, plus 1. Higher bits: the offset
     * in the area. */
    uint32_t start;
    uint32_t place; /* low SJ_STUB_KIND_SHIFT bits: offset in the text; higher bits: sj_stub_kind */
} sj_stub_entry;

typedef struct sj_stub_area {
    uint64_t magic;
    int64_t text;   /* distance from the area's first byte to the start of the text */
    uint32_t map;   /* offset of the entries in the area */
    uint32_t count; /* number of entries, sorted by `start`; each entry is valid up to the next */
    uint32_t code_end;
    uint32_t unwind; /* offset of the index of its unwind tables (.eh_frame_hdr); 0: none */
} sj_stub_area;

/* Location of an area. A writer publishes it by writing `low` last. */
typedef struct sj_stub_range {
    _Atomic uint64_t low; /* 0: free */
    _Atomic uint64_t bytes;
} sj_stub_range;

enum { SJ_STUB_RANGES = 32768 };

/* The areas of a process, unsorted. Tracers find them through the agent's state. */
typedef struct sj_stub_ranges {
    /* number of ranges ever used; some of them may be free again. The pages of the other ranges use
     * no memory. */
    _Atomic uint32_t count;
    sj_stub_range ranges[SJ_STUB_RANGES];
} sj_stub_ranges;

/* The place in the program that a byte of an area belongs to. */
typedef struct sj_stub_place {
    sj_stub_kind kind;
    int32_t stack;    /* bytes from the stack pointer to its value at the place */
    uint64_t address; /* for FIXED and COPY */
} sj_stub_place;

/* Position of an interrupted thread. */
typedef struct sj_stub_state {
    uint64_t pc;
    uint64_t sp;
    uint64_t link;  /* AArch64: the link register */
    bool is_behind; /* `pc` is the return address of a call that has not returned */
} sj_stub_state;

/* Copies `count` bytes from an address of the program. Returns false if it cannot. */
typedef bool sj_stub_read(void *context, uint64_t address, void *bytes, uint32_t count);

/* Finds the place of the code at `pc`. Returns false if `pc` is not in the code of the area of
 * `bytes` bytes at `low`, or if the area has no map. Async-signal-safe if `read` is. */
bool sj_stub_find(uint64_t low, uint64_t bytes, uint64_t pc, sj_stub_read *read, void *context,
                  sj_stub_place *place);

/* Changes the state of a thread inside the area to the state that it would have in the program.
 * Returns false, and leaves the state unchanged, if the thread is not inside or its place is not
 * known. Async-signal-safe if `read` is. */
bool sj_stub_leave(uint64_t low, uint64_t bytes, sj_stub_read *read, void *context,
                   sj_stub_state *state);

#endif
