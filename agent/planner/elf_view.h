/* A bounds-checked view of an ELF64 file: sections, segments, bytes at an address.
 * Everything that is returned borrows from the view. Thread-safe for readers. */
#ifndef SJ_AGENT_PLANNER_ELF_VIEW_H
#define SJ_AGENT_PLANNER_ELF_VIEW_H

#include "agent/control/error.h"
#include "proto/cursor.h"

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

/* sj_elf_open maps a file and reads its tables. SJ_ENOTFOUND, SJ_EUNSUPPORTED (not a little-endian
 * ELF64), SJ_ECORRUPT, SJ_EIO. Release with sj_elf_close. */
SJ_MUST_CHECK sj_status sj_elf_open(const char *path, sj_elf *elf, sj_error *error);

/* sj_elf_parse reads the tables of bytes that the caller keeps alive. As sj_elf_open. */
SJ_MUST_CHECK sj_status sj_elf_parse(sj_slice bytes, sj_elf *elf, sj_error *error);

/* sj_elf_adopt is sj_elf_parse of allocated bytes that the view frees, on failure too. */
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

#endif
