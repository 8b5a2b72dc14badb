/* Unwind tables (.eh_frame): where functions are, where a frame is still that of the entry, and
 * where exceptions land. An own bounds-checked reader, because the planner asks for the frame rule
 * of every instruction: it interprets each description once. */
#ifndef SJ_AGENT_OBJFILE_EH_FRAME_H
#define SJ_AGENT_OBJFILE_EH_FRAME_H

#include "agent/objfile/elf_view.h"

/* How the frame is found in a part of a range. */
typedef struct sj_cfi_row {
    uint64_t end;     /* address behind it; the row before ends where it starts */
    int32_t distance; /* of the canonical frame address from the stack pointer */
    bool is_known;    /* the rule says it in these words */
    bool is_entry;    /* the frame is as it was at the entry: CFA = rsp + 8 (AArch64: sp) */
} sj_cfi_row;

/* The frame of one contiguous range of code. */
typedef struct sj_fde {
    uint64_t start;
    uint64_t end;
    uint64_t landing; /* address of its exception table; 0: none */
    uint32_t first_row;
    uint32_t row_count; /* one at least; the last reaches the range's end */
} sj_fde;

typedef struct sj_eh_frame {
    sj_fde *ranges; /* sorted by start */
    size_t count;
    size_t capacity;
    sj_cfi_row *rows; /* of each range by address */
    size_t row_count;
    size_t row_capacity;
} sj_eh_frame;

/* sj_eh_frame_read reads all descriptions of an .eh_frame section. Damaged entries end the reading:
 * what was read before stays. SJ_ENOMEM. Release with sj_eh_frame_free. */
SJ_MUST_CHECK sj_status sj_eh_frame_read(sj_slice section, uint64_t address, sj_eh_frame *unwind);

void sj_eh_frame_free(sj_eh_frame *unwind);

/* sj_eh_frame_find returns the range that holds an address, or NULL. */
const sj_fde *sj_eh_frame_find(const sj_eh_frame *unwind, uint64_t address);

/* sj_eh_frame_find_near is sj_eh_frame_find, fast where the range is `near` (or NULL). */
const sj_fde *sj_eh_frame_find_near(const sj_eh_frame *unwind, const sj_fde *near,
                                    uint64_t address);

/* sj_eh_frame_row returns the row that holds an address of the range. */
const sj_cfi_row *sj_eh_frame_row(const sj_eh_frame *unwind, const sj_fde *range, uint64_t address);

/* sj_landing_pads calls `visit` for every landing pad of a range. */
void sj_landing_pads(const sj_elf *elf, const sj_fde *range,
                     void (*visit)(void *context, uint64_t pad), void *context);

#endif
