/* Writes the map of a stub area (agent/abi/stub_map.h) while its code is emitted. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H
#define SJ_AGENT_INPROC_HOOKS_STUB_NOTES_H

#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/arch.h"

/* The entries of one of the two parts of an area that grow side by side. */
typedef struct sj_stub_stream {
    sj_stub_entry *entries; /* NULL: they are only counted */
    sj_stub_entry last;
    uint32_t count;
    uint32_t room;
} sj_stub_stream;

typedef struct sj_stub_notes {
    uint64_t area; /* address; while measuring 0 */
    uint64_t text; /* address that places are counted from */
    sj_stub_stream main;
    sj_stub_stream cold;
    sj_stub_kind kind; /* of what is emitted now */
    uint64_t place;
} sj_stub_notes;

/* sj_code_begin_place says what the code from emitter->at on stands for; `address` counts for
 * FIXED and COPY. */
void sj_code_begin_place(sj_code_emitter *emitter, sj_stub_kind kind, uint64_t address);

/* sj_code_note_stack says how far the stack pointer is from its place in the code from `at` on,
 * which stands for what was begun last; `at`: &emitter->at or &emitter->cold_at. */
void sj_code_note_stack(sj_code_emitter *emitter, const uint64_t *at, int32_t stack);

/* sj_stub_notes_write_unwind writes the unwind tables of a writable area that has a head. */
void sj_stub_notes_write_unwind(uint8_t *area);

/* sj_stub_notes_finish writes the head of an area of `module` whose entries begin at offset `map`
 * and whose code ends at `code_end`. */
void sj_stub_notes_finish(const sj_stub_notes *notes, uint32_t map, uint32_t code_end);

#endif
