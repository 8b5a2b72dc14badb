/* Reads unwind tables (.eh_frame): the bounds of functions, the stack frame at each address, and
 * the landing pads of exceptions. Each description is interpreted once and stored as rows, because
 * the planner asks for the frame rule of every instruction. All reads are bounds-checked. */
#ifndef SJ_AGENT_OBJFILE_EH_FRAME_H
#define SJ_AGENT_OBJFILE_EH_FRAME_H

#include "agent/objfile/elf_view.h"

/* The frame rule for a part of a range. */
typedef struct sj_cfi_row {
    uint64_t end;     /* address after the row; a row starts where the previous row ends */
    int32_t distance; /* bytes from the stack pointer to the canonical frame address (CFA) */
    bool is_known;    /* the rule is of the form "stack pointer plus distance" */
    bool is_entry;    /* the frame is as at the function's entry: CFA = rsp + 8 (AArch64: sp) */
} sj_cfi_row;

/* The frame of one contiguous range of code (frame description entry). */
typedef struct sj_fde {
    uint64_t start;
    uint64_t end;
    uint64_t landing;         /* address of the exception table (LSDA); 0: none */
    bool is_landing_indirect; /* `landing` is where the table's address is stored */
    bool is_landing_unknown;  /* there is a table, but its address is in an unknown format */
    uint32_t first_row;
    uint32_t row_count; /* at least one; the last row reaches the end of the range */
} sj_fde;

typedef struct sj_eh_frame {
    sj_fde *ranges; /* sorted by start */
    size_t count;
    size_t capacity;
    sj_cfi_row *rows; /* rows of each range are contiguous and sorted by address */
    size_t row_count;
    size_t row_capacity;
} sj_eh_frame;

/* Reads the descriptions of an .eh_frame section that is loaded at `address` into a zeroed
 * `*unwind`. Skips descriptions in unknown formats. Stops at an entry that exceeds the section and
 * keeps the descriptions before it. Returns SJ_ENOMEM if out of memory. Release with
 * sj_eh_frame_free, on failure too. */
SJ_MUST_CHECK sj_status sj_eh_frame_read(sj_slice section, uint64_t address, sj_eh_frame *unwind);

void sj_eh_frame_free(sj_eh_frame *unwind);

/* Returns the range that contains an address, or NULL. */
const sj_fde *sj_eh_frame_find(const sj_eh_frame *unwind, uint64_t address);

/* Returns the same as sj_eh_frame_find, but faster if the range `near` contains the address. `near`
 * may be NULL. */
const sj_fde *sj_eh_frame_find_near(const sj_eh_frame *unwind, const sj_fde *near,
                                    uint64_t address);

/* Returns the row of `range` that contains `address`. The range must contain the address. */
const sj_cfi_row *sj_eh_frame_row(const sj_eh_frame *unwind, const sj_fde *range, uint64_t address);

/* Calls `visit` with the address of every landing pad of a range. Returns false if the range has an
 * exception table that cannot be read to its end. There may be further landing pads then. */
SJ_MUST_CHECK bool sj_landing_pads(const sj_elf *elf, const sj_fde *range,
                                   void (*visit)(void *context, uint64_t pad), void *context);

#endif
