/* Reads the dynamic section of a loaded module, and writes words that the loader has relocated. */
#ifndef SJ_AGENT_INPROC_HOOKS_DYNAMIC_VIEW_H
#define SJ_AGENT_INPROC_HOOKS_DYNAMIC_VIEW_H

#include "agent/abi/machine.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_dynamic_view {
    uint64_t bias;
    uint64_t text_low; /* the first executable segment */
    uint64_t text_high;
    ElfW(Dyn) * dynamic;
    /* as its program header says; the loader may make the section read-only after relocation */
    bool dynamic_is_writable;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2]; /* relocations: DT_JMPREL, DT_RELA */
    size_t table_bytes[2];
    uint64_t relro_low;
    uint64_t relro_high;
    const uint32_t *hash;         /* DT_GNU_HASH; NULL: none */
    const uint16_t *versions;     /* DT_VERSYM; NULL: none */
    const ElfW(Verneed) * needed; /* DT_VERNEED; NULL: none */
    const ElfW(Verdef) * defined; /* DT_VERDEF; NULL: none */
} sj_dynamic_view;

/* Reads the module that dl_iterate_phdr passes to its callback. Returns false for the agent itself,
 * the vDSO, and modules without a dynamic section or symbols. */
bool sj_dynamic_view_read(const struct dl_phdr_info *info, sj_dynamic_view *view);

/* A word that a relocation fills with the address of a symbol. To begin an iteration, set all
 * members to 0. */
typedef struct sj_slot {
    uint32_t table; /* index in sj_dynamic_view.tables */
    size_t next;    /* index of the next relocation in that table */
    /* SJ_MACHINE_JUMP_SLOT, SJ_MACHINE_GLOBAL_DATA, or SJ_MACHINE_WORD with addend 0 */
    uint32_t type;
    uint32_t symbol;
    uint64_t address;
    const char *name; /* name of the symbol */
} sj_slot;

/* Finds the next slot of a module. Returns false at the end. */
bool sj_slot_next(const sj_dynamic_view *view, sj_slot *slot);

/* Writes a word with one store. Works also for words that are read-only after relocation: their
 * page is writable for a moment. Returns false if the kernel refuses. */
bool sj_slot_write(const sj_dynamic_view *view, uint64_t slot, uint64_t value);

/* Returns the hash of a name in DT_GNU_HASH. */
uint32_t sj_symbol_hash(const char *name);

/* Writes to `*index` the number of the next symbol with that name that the module defines, after
 * `*index` (0: from the start). Returns false if there is none, or if the module has no
 * DT_GNU_HASH. */
bool sj_symbol_next(const sj_dynamic_view *view, const char *name, uint32_t hash, uint32_t *index);

/* Returns the name of the version in which the module imports the symbol, or NULL if it names no
 * version. */
const char *sj_symbol_version(const sj_dynamic_view *view, uint32_t symbol);

#endif
