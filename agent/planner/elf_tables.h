/* The rows of an ELF file's tables: symbols, and relocations with addends. */
#ifndef SJ_AGENT_PLANNER_ELF_TABLES_H
#define SJ_AGENT_PLANNER_ELF_TABLES_H

#include "agent/planner/elf_view.h"

typedef struct sj_elf_symbol {
    uint32_t name; /* offset in the table's strings */
    uint8_t type;
    uint8_t binding;
    uint8_t other;
    uint16_t section;
    uint64_t value;
    uint64_t size;
} sj_elf_symbol;

typedef struct sj_elf_relocation {
    uint64_t place;
    uint64_t addend;
    uint32_t type;
    uint32_t symbol; /* index in the table that the relocation's section names */
} sj_elf_relocation;

/* A walk over the relocations that the loader applies, of all sections. */
typedef struct sj_elf_relocations {
    const sj_elf *elf;
    uint32_t next_section;
    sj_reader reader;
    sj_slice symbols; /* of the section at hand */
} sj_elf_relocations;

/* sj_elf_read_symbol reads the next row of a symbol table. */
sj_elf_symbol sj_elf_read_symbol(sj_reader *reader);

/* sj_elf_symbol_at reads one row; false when the table does not reach that far. */
bool sj_elf_symbol_at(sj_slice table, uint32_t index, sj_elf_symbol *symbol);

/* sj_elf_next_relocation reads the next one; false behind the last. A walk starts with `elf` set
 * and all else zero. */
bool sj_elf_next_relocation(sj_elf_relocations *walk, sj_elf_relocation *relocation);

#endif
