/* A bounds-checked view of an ELF64 file: sections, segments, bytes at an address, symbols and
 * relocations. All returned pointers and slices borrow from the view. Several threads may read a
 * view at the same time. */
#ifndef SJ_AGENT_OBJFILE_ELF_VIEW_H
#define SJ_AGENT_OBJFILE_ELF_VIEW_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

typedef struct sj_elf_section {
    const char *name; /* "" if the file does not name it */
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
    void *mapping;   /* set by sj_elf_open, else NULL */
    void *allocated; /* set by sj_elf_adopt, else NULL */
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

/* An iterator over the relocations that the loader applies, in all sections. */
typedef struct sj_elf_relocations {
    const sj_elf *elf;
    uint32_t next_section;
    sj_reader reader;
    sj_slice symbols; /* symbol table of the current section */
} sj_elf_relocations;

/* Maps a file and reads its tables. Release with sj_elf_close. Returns SJ_ENOTFOUND if there is no
 * such file, and SJ_EIO if it cannot be opened. Returns SJ_EUNSUPPORTED if it is empty or not a
 * little-endian ELF64 file. Returns SJ_ECORRUPT if tables lie outside of the file, and SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_elf_open(const char *path, sj_elf *elf, sj_error *error);

/* Reads the tables of a file in memory that malloc allocated. The view owns the memory and frees
 * it, on failure too. Errors are those of sj_elf_open. */
SJ_MUST_CHECK sj_status sj_elf_adopt(uint8_t *bytes, size_t size, sj_elf *elf, sj_error *error);

/* Releases a view. A zeroed view is allowed. */
void sj_elf_close(sj_elf *elf);

/* Returns the first section of that name, or NULL. */
const sj_elf_section *sj_elf_find_section(const sj_elf *elf, const char *name);

/* Returns a section's bytes. Returns an empty slice if `section` is NULL or if the file does not
 * contain its bytes. */
sj_slice sj_elf_section_bytes(const sj_elf *elf, const sj_elf_section *section);

/* Returns the file's bytes from an address to the end of its segment. Returns an empty slice if no
 * segment contains the address. */
sj_slice sj_elf_at(const sj_elf *elf, uint64_t address);

/* Returns the GNU build-id, or an empty slice. */
sj_slice sj_elf_build_id(const sj_elf *elf);

/* Returns the string at `offset` in a string table, or "" if it is not in the table. */
const char *sj_elf_string(sj_slice table, uint64_t offset);

/* Reads the next row of a symbol table. */
sj_elf_symbol sj_elf_read_symbol(sj_reader *reader);

/* Reads one row of a symbol table. Returns false if the table is too short. */
bool sj_elf_symbol_at(sj_slice table, uint32_t index, sj_elf_symbol *symbol);

/* Reads the next relocation. Returns false after the last one. Before the first call, set `elf` and
 * zero all other members. */
bool sj_elf_next_relocation(sj_elf_relocations *walk, sj_elf_relocation *relocation);

#endif
