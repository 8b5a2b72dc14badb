/* A view of one loaded module's dynamic section, and a writer of the words that it relocates. */
#ifndef SJ_AGENT_INPROC_HOOKS_DYNAMIC_VIEW_H
#define SJ_AGENT_INPROC_HOOKS_DYNAMIC_VIEW_H

#include "agent/abi/machine.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_dynamic_view {
    uint64_t bias;
    uint64_t text_low; /* executable segment */
    uint64_t text_high;
    ElfW(Dyn) * dynamic;
    bool dynamic_is_writable; /* its segment, except what is read-only after relocation */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t table_bytes[2];
    uint64_t relro_low;
    uint64_t relro_high;
    const uint32_t *hash;         /* DT_GNU_HASH; NULL: none */
    const uint16_t *versions;     /* DT_VERSYM; NULL: none */
    const ElfW(Verneed) * needed; /* DT_VERNEED; NULL: none */
    const ElfW(Verdef) * defined; /* DT_VERDEF; NULL: none */
} sj_dynamic_view;

/* sj_dynamic_view_read reads a module that dl_iterate_phdr shows; false for the agent itself, the
 * vDSO, and what has no dynamic section. */
bool sj_dynamic_view_read(const struct dl_phdr_info *info, sj_dynamic_view *view);

/* One word that a relocation fills with the address of a symbol. Zeroed: before the first one. */
typedef struct sj_slot {
    uint32_t table; /* of sj_dynamic_view.tables */
    size_t next;    /* index in it of the relocation to look at next */
    uint32_t
        type; /* SJ_MACHINE_JUMP_SLOT, SJ_MACHINE_GLOBAL_DATA, or SJ_MACHINE_WORD with addend 0 */
    uint32_t symbol;
    uint64_t address;
    const char *name; /* of the symbol */
} sj_slot;

/* sj_slot_next finds the next slot of a module; false at the end. */
bool sj_slot_next(const sj_dynamic_view *view, sj_slot *slot);

/* sj_slot_write writes a word with one store, also one that is read-only after relocation.
 * False when the kernel refuses. */
bool sj_slot_write(const sj_dynamic_view *view, uint64_t slot, uint64_t value);

/* sj_symbol_hash is that of DT_GNU_HASH. */
uint32_t sj_symbol_hash(const char *name);

/* sj_symbol_next finds the next symbol of that name and hash that the module defines, after
 * `*index` (0: the first one). False: there is no other, or the module has no such table. */
bool sj_symbol_next(const sj_dynamic_view *view, const char *name, uint32_t hash, uint32_t *index);

/* sj_symbol_version names the version that the module needs of a symbol; NULL: any. */
const char *sj_symbol_version(const sj_dynamic_view *view, uint32_t symbol);

#endif
