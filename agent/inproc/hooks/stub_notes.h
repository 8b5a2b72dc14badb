/* Writes the map of a stub area (agent/abi/stub_map.h) while its code is emitted. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H
#define SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H

#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/arch.h"

/* Entries for one of the two parts of an area (main lines, slow parts), which grow in parallel. */
typedef struct sj_stub_stream {
    sj_stub_entry *entries; /* NULL: entries are only counted */
    sj_stub_entry last;
    uint32_t count;
    uint32_t capacity;
} sj_stub_stream;

typedef struct sj_stub_notes {
    uint64_t area; /* address of the area; 0 while measuring */
    uint64_t text; /* places are distances from this address */
    sj_stub_stream main;
    sj_stub_stream cold;
    sj_stub_kind kind; /* kind of the code that is emitted now */
    uint64_t place;
} sj_stub_notes;

/* Notes the instruction that the code from emitter->at on stands for. `address` is used for FIXED
 * and COPY only. */
void sj_code_begin_place(sj_code_emitter *emitter, sj_stub_kind kind, uint64_t address);

/* Notes the distance of the stack pointer from its value at the place, in bytes. It holds for the
 * code from `at` on, which stands for the place that was begun last. `at` is &emitter->at or
 * &emitter->cold_at. */
void sj_code_note_stack(sj_code_emitter *emitter, const uint64_t *at, int32_t stack);

/* Writes the unwind tables of a writable area that has a head. */
void sj_stub_notes_write_unwind(uint8_t *area);

/* Writes the head of an area of `module`. The area's entries begin at offset `map`, and its code
 * ends at `code_end`. */
void sj_stub_notes_finish(const sj_stub_notes *notes, uint32_t map, uint32_t code_end);

#endif
