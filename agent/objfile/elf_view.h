/* A bounds-checked view of an ELF64 file: sections, segments, bytes at an address, and the rows of
 * symbols and relocations.
 * Everything that is returned borrows from the view. Thread-safe for readers. */
#ifndef SJ_AGENT_OBJFILE_ELF_VIEW_H
#define SJ_AGENT_OBJFILE_ELF_VIEW_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

typedef struct sj_elf_section {
    const char *name; /* NUL-terminated, "" when the file has none */
    uint32_t type;
    uint32_t link;
    uint64_t flags;
    uint64_t address;
    uint64_t offset;
    uint64_t size;
} sj_elf_section;

typedef struct sj_elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t offset;
    uint64_t address;
    uint64_t file_bytes;
} sj_elf_segment;

typedef struct sj_elf {
    sj_slice file;
    void *mapping;   /* of sj_elf_open */
    void *allocated; /* of sj_elf_adopt */
    uint16_t type;
    uint16_t machine;
    uint64_t entry;
    sj_elf_section *sections;
    uint32_t section_count;
    sj_elf_segment *segments;
    uint32_t segment_count;
} sj_elf;

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

/* sj_elf_open maps a file and reads its tables. SJ_ENOTFOUND, SJ_EUNSUPPORTED (not a little-endian
 * ELF64), SJ_ECORRUPT, SJ_EIO. Release with sj_elf_close. */
SJ_MUST_CHECK sj_status sj_elf_open(const char *path, sj_elf *elf, sj_error *error);

/* sj_elf_adopt reads the tables of allocated bytes that the view frees, on failure too. As
 * sj_elf_open. */
SJ_MUST_CHECK sj_status sj_elf_adopt(uint8_t *bytes, size_t size, sj_elf *elf, sj_error *error);

/* sj_elf_close releases a view; safe on a zeroed one. */
void sj_elf_close(sj_elf *elf);

/* sj_elf_find_section returns the first section of that name, or NULL. */
const sj_elf_section *sj_elf_find_section(const sj_elf *elf, const char *name);

/* sj_elf_section_bytes returns a section's bytes; empty when it has none inside the file. */
sj_slice sj_elf_section_bytes(const sj_elf *elf, const sj_elf_section *section);

/* sj_elf_at returns the file's bytes from an address to the end of its segment, or an empty slice.
 */
sj_slice sj_elf_at(const sj_elf *elf, uint64_t address);

/* sj_elf_build_id returns the GNU build-id, or an empty slice. */
sj_slice sj_elf_build_id(const sj_elf *elf);

/* sj_elf_string returns the string at `offset` of a string table, "" when it is not inside. */
const char *sj_elf_string(sj_slice table, uint64_t offset);

/* sj_elf_read_symbol reads the next row of a symbol table. */
sj_elf_symbol sj_elf_read_symbol(sj_reader *reader);

/* sj_elf_symbol_at reads one row; false when the table does not reach that far. */
bool sj_elf_symbol_at(sj_slice table, uint32_t index, sj_elf_symbol *symbol);

/* sj_elf_next_relocation reads the next one; false behind the last. A walk starts with `elf` set
 * and all else zero. */
bool sj_elf_next_relocation(sj_elf_relocations *walk, sj_elf_relocation *relocation);

#endif
