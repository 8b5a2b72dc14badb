/* Unwind tables (.eh_frame): where functions are, where a frame is still that of the entry, and
 * where exceptions land. An own bounds-checked reader, because the planner asks for the frame rule
 * of every instruction: it interprets each description once, in step with the disassembly. */
#ifndef SJ_AGENT_PLANNER_UNWIND_H
#define SJ_AGENT_PLANNER_UNWIND_H

#include "agent/planner/elf_view.h"

/* The frame of one contiguous range of code. */
typedef struct sj_frame_range {
    uint64_t start;
    uint64_t end;
    sj_slice initial; /* of the common entry */
    sj_slice instructions;
    uint32_t code_factor;
    int32_t data_factor;
    uint64_t landing; /* address of its exception table; 0: none */
} sj_frame_range;

typedef struct sj_unwind {
    sj_frame_range *ranges; /* sorted by start */
    size_t count;
    size_t capacity;
} sj_unwind;

/* sj_unwind_read reads all descriptions of an .eh_frame section. Damaged entries end the reading:
 * what was read before stays. SJ_ENOMEM. Release with sj_unwind_free. */
SJ_MUST_CHECK sj_status sj_unwind_read(sj_slice section, uint64_t address, sj_unwind *unwind);

void sj_unwind_free(sj_unwind *unwind);

/* sj_unwind_find returns the range that holds an address, or NULL. */
const sj_frame_range *sj_unwind_find(const sj_unwind *unwind, uint64_t address);

/* A walk over one range's rows, with rising addresses. */
typedef struct sj_frame_walk {
    sj_reader reader;
    const sj_frame_range *range;
    uint64_t row_end; /* the current row holds up to here */
    uint64_t location;
    bool is_entry_frame; /* CFA = rsp + 8 (AArch64: sp) and the rules are known */
    bool is_broken;
    int32_t reg;
    int64_t offset;
    struct {
        int32_t reg;
        int64_t offset;
    } saved[32];
    uint32_t saved_count;
} sj_frame_walk;

void sj_frame_walk_init(sj_frame_walk *walk, const sj_frame_range *range);

/* sj_frame_walk_at tells whether the canonical frame address at `address` (>= that of the call
 * before) is rsp + 8 (AArch64: sp), that is: whether the frame is as it was at the entry. */
bool sj_frame_walk_at(sj_frame_walk *walk, uint64_t address);

/* sj_frame_walk_distance goes to `address`, as sj_frame_walk_at does, and tells how far the
 * canonical frame address lies from the stack pointer there; false when the rule says it in other
 * words. */
bool sj_frame_walk_distance(sj_frame_walk *walk, uint64_t address, int64_t *distance);

/* sj_landing_pads calls `visit` for every landing pad of a range. */
void sj_landing_pads(const sj_elf *elf, const sj_frame_range *range,
                     void (*visit)(void *context, uint64_t pad), void *context);

#endif
