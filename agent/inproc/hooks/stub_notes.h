/* Writes the map of a stub area (agent/abi/stub_map.h) while its code is emitted. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H
#define SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H

#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/arch.h"

/* Map entries for one of the two parts of an area: the fast code or the slow code of all stubs.
 * Both parts grow at the same time. */
typedef struct sj_stub_stream {
    sj_stub_entry *entries; /* NULL: entries are only counted */
    sj_stub_entry last;
    uint32_t count;
    uint32_t capacity;
} sj_stub_stream;

typedef struct sj_stub_notes {
    uint64_t area; /* address of the area; 0 while measuring */
    uint64_t text; /* start of the module's text; entries store places as distances from it */
    sj_stub_stream main;
    sj_stub_stream cold;
    sj_stub_kind kind; /* kind of the code that is emitted now */
    uint64_t place;    /* address of the instruction that this code replaces */
} sj_stub_notes;

/* Notes that the code from emitter->at on replaces the instruction at `address`. `address` is used
 * for SJ_STUB_FIXED and SJ_STUB_COPY only. */
void sj_code_begin_place(sj_code_emitter *emitter, sj_stub_kind kind, uint64_t address);

/* Notes the stack pointer of the code from `*at` on: `stack` bytes below its value at the program's
 * instruction that the code replaces. `at` is &emitter->at or &emitter->cold_at. */
void sj_code_note_stack(sj_code_emitter *emitter, const uint64_t *at, int32_t stack);

/* Writes the unwind tables of a writable area whose sj_stub_area is complete. */
void sj_stub_notes_write_unwind(uint8_t *area);

/* Writes the sj_stub_area and the unwind tables of the area of `notes`. The map's entries begin at
 * offset `map`, and the code ends at offset `code_end`. */
void sj_stub_notes_finish(const sj_stub_notes *notes, uint32_t map, uint32_t code_end);

#endif
