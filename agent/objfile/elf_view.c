#include "agent/objfile/elf_view.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX_ENTRIES = 1 << 20, NOTE_ALIGN = 4 };

typedef struct elf_tables {
    uint64_t segments_offset;
    uint64_t sections_offset;
    uint32_t segment_count;
    uint32_t section_count;
    uint32_t names_index;
} elf_tables;

/* Returns part of `bytes`, or an empty slice if the part is not inside. */
static sj_slice slice_of(sj_slice bytes, uint64_t offset, uint64_t size)
{
    if (offset > bytes.size || size > bytes.size - offset) {
        return (sj_slice){0};
    }
    return (sj_slice){.data = bytes.data + offset, .size = (size_t)size};
}

const char *sj_elf_string(sj_slice table, uint64_t offset)
{
    if (offset >= table.size ||
        memchr(table.data + offset, 0, table.size - (size_t)offset) == NULL) {
        return "";
    }
    return (const char *)table.data + offset;
}

static sj_status read_header(sj_elf *elf, elf_tables *tables, sj_error *error)
{
    static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    if (elf->file.size < sizeof(Elf64_Ehdr) || memcmp(elf->file.data, magic, sizeof(magic)) != 0) {
        return sj_fail(error, SJ_EUNSUPPORTED, "not a little-endian 64-bit ELF file");
    }
    sj_reader reader = sj_reader_of(elf->file.data, elf->file.size);
    (void)sj_read_bytes(&reader, EI_NIDENT);
    elf->type = sj_read_u16(&reader);
    elf->machine = sj_read_u16(&reader);
    (void)sj_read_u32(&reader);
    elf->entry = sj_read_u64(&reader);
    tables->segments_offset = sj_read_u64(&reader);
    tables->sections_offset = sj_read_u64(&reader);
    (void)sj_read_u32(&reader);
    (void)sj_read_u16(&reader);
    const uint16_t segment_bytes = sj_read_u16(&reader);
    tables->segment_count = sj_read_u16(&reader);
    const uint16_t section_bytes = sj_read_u16(&reader);
    tables->section_count = sj_read_u16(&reader);
    tables->names_index = sj_read_u16(&reader);
    if ((tables->segment_count != 0 && segment_bytes != sizeof(Elf64_Phdr)) ||
        (tables->sections_offset != 0 && section_bytes != sizeof(Elf64_Shdr))) {
        return sj_fail(error, SJ_ECORRUPT, "ELF header with unknown table entry sizes");
    }
    return SJ_OK;
}

static sj_elf_section read_section(sj_reader *reader, uint32_t *name)
{
    sj_elf_section section = {.name = ""};
    *name = sj_read_u32(reader);
    section.type = sj_read_u32(reader);
    section.flags = sj_read_u64(reader);
    section.address = sj_read_u64(reader);
    section.offset = sj_read_u64(reader);
    section.size = sj_read_u64(reader);
    section.link = sj_read_u32(reader);
    (void)sj_read_bytes(reader, sizeof(uint32_t) + 2 * sizeof(uint64_t));
    return section;
}

/* If a file has more sections than 16 bits can count, section 0 contains the count and the index of
 * the names. */
static void read_extended_counts(const sj_elf *elf, elf_tables *tables)
{
    const sj_slice bytes = slice_of(elf->file, tables->sections_offset, sizeof(Elf64_Shdr));
    if (bytes.size == 0) {
        return;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    uint32_t name;
    const sj_elf_section first = read_section(&reader, &name);
    if (tables->section_count == 0) {
        tables->section_count = first.size < TABLE_MAX_ENTRIES ? (uint32_t)first.size : 0;
    }
    if (tables->names_index == SHN_XINDEX) {
        tables->names_index = first.link;
    }
}

static sj_status read_sections(sj_elf *elf, const elf_tables *tables, sj_error *error)
{
    const sj_slice bytes = slice_of(elf->file, tables->sections_offset,
                                    (uint64_t)tables->section_count * sizeof(Elf64_Shdr));
    if (tables->section_count == 0 || tables->sections_offset == 0) {
        return SJ_OK;
    }
    if (bytes.size == 0) {
        return sj_fail(error, SJ_ECORRUPT, "ELF section table lies outside of the file");
    }
    elf->sections = calloc(tables->section_count, sizeof(*elf->sections));
    uint32_t *names = calloc(tables->section_count, sizeof(*names));
    if (elf->sections == NULL || names == NULL) {
        free(names);
        return sj_fail(error, SJ_ENOMEM, "out of memory for ELF sections");
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    for (uint32_t i = 0; i < tables->section_count; i++) {
        elf->sections[i] = read_section(&reader, &names[i]);
    }
    elf->section_count = tables->section_count;
    if (tables->names_index < elf->section_count) {
        const sj_slice strings = sj_elf_section_bytes(elf, &elf->sections[tables->names_index]);
        for (uint32_t i = 0; i < elf->section_count; i++) {
            elf->sections[i].name = sj_elf_string(strings, names[i]);
        }
    }
    free(names);
    return SJ_OK;
}

static sj_status read_segments(sj_elf *elf, const elf_tables *tables, sj_error *error)
{
    if (tables->segment_count == 0) {
        return SJ_OK;
    }
    const sj_slice bytes = slice_of(elf->file, tables->segments_offset,
                                    (uint64_t)tables->segment_count * sizeof(Elf64_Phdr));
    if (bytes.size == 0) {
        return sj_fail(error, SJ_ECORRUPT, "ELF program headers lie outside of the file");
    }
    elf->segments = calloc(tables->segment_count, sizeof(*elf->segments));
    if (elf->segments == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory for ELF segments");
    }
    elf->segment_count = tables->segment_count;
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        sj_elf_segment *segment = &elf->segments[i];
        segment->type = sj_read_u32(&reader);
        segment->flags = sj_read_u32(&reader);
        segment->offset = sj_read_u64(&reader);
        segment->address = sj_read_u64(&reader);
        (void)sj_read_u64(&reader);
        segment->file_bytes = sj_read_u64(&reader);
        (void)sj_read_bytes(&reader, 2 * sizeof(uint64_t));
    }
    return SJ_OK;
}

static sj_status parse_tables(sj_elf *elf, sj_error *error)
{
    elf_tables tables = {0};
    SJ_TRY(read_header(elf, &tables, error));
    if (tables.sections_offset != 0) {
        read_extended_counts(elf, &tables);
    }
    SJ_TRY(read_segments(elf, &tables, error));
    return read_sections(elf, &tables, error);
}

sj_status sj_elf_adopt(uint8_t *bytes, size_t size, sj_elf *elf, sj_error *error)
{
    *elf = (sj_elf){.file = {.data = bytes, .size = size}, .allocated = bytes};
    const sj_status status = parse_tables(elf, error);
    if (status != SJ_OK) {
        sj_elf_close(elf);
    }
    return status;
}

sj_status sj_elf_open(const char *path, sj_elf *elf, sj_error *error)
{
    *elf = (sj_elf){0};
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot open %s: %s", path,
                       strerror(errno));
    }
    struct stat status;
    void *mapping = MAP_FAILED;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
    if (mapping == MAP_FAILED) {
        return sj_fail(error, SJ_EUNSUPPORTED, "%s is empty or not a regular file", path);
    }
    elf->mapping = mapping;
    elf->file = (sj_slice){.data = mapping, .size = (size_t)status.st_size};
    const sj_status parsed = parse_tables(elf, error);
    if (parsed != SJ_OK) {
        sj_elf_close(elf);
    }
    return parsed;
}

void sj_elf_close(sj_elf *elf)
{
    free(elf->sections);
    free(elf->segments);
    free(elf->allocated);
    if (elf->mapping != NULL) {
        munmap(elf->mapping, elf->file.size);
    }
    *elf = (sj_elf){0};
}

const sj_elf_section *sj_elf_find_section(const sj_elf *elf, const char *name)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (strcmp(elf->sections[i].name, name) == 0) {
            return &elf->sections[i];
        }
    }
    return NULL;
}

sj_slice sj_elf_section_bytes(const sj_elf *elf, const sj_elf_section *section)
{
    if (section == NULL || section->type == SHT_NOBITS || section->type == SHT_NULL) {
        return (sj_slice){0};
    }
    return slice_of(elf->file, section->offset, section->size);
}

sj_slice sj_elf_at(const sj_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const sj_elf_segment *segment = &elf->segments[i];
        if (segment->type == PT_LOAD && address >= segment->address &&
            address - segment->address < segment->file_bytes) {
            const sj_slice bytes = slice_of(elf->file, segment->offset, segment->file_bytes);
            const uint64_t skip = address - segment->address;
            return bytes.size == 0 ? bytes : slice_of(bytes, skip, bytes.size - skip);
        }
    }
    return (sj_slice){0};
}

/* Returns the GNU build-id in a section of notes, or an empty slice. */
static sj_slice find_build_id(sj_slice notes)
{
    sj_reader reader = sj_reader_of(notes.data, notes.size);
    while (sj_reader_left(&reader) > 0 && !reader.bad) {
        const uint32_t name_bytes = sj_read_u32(&reader);
        const uint32_t content_bytes = sj_read_u32(&reader);
        const uint32_t type = sj_read_u32(&reader);
        const uint8_t *name =
            sj_read_bytes(&reader, ((size_t)name_bytes + NOTE_ALIGN - 1) & ~(size_t)3);
        const uint8_t *content =
            sj_read_bytes(&reader, ((size_t)content_bytes + NOTE_ALIGN - 1) & ~(size_t)3);
        if (content != NULL && type == NT_GNU_BUILD_ID && name_bytes == sizeof("GNU") &&
            memcmp(name, "GNU", sizeof("GNU")) == 0) {
            return (sj_slice){.data = content, .size = content_bytes};
        }
    }
    return (sj_slice){0};
}

sj_slice sj_elf_build_id(const sj_elf *elf)
{
    for (uint32_t i = 0; i < elf->segment_count; i++) {
        const sj_elf_segment *segment = &elf->segments[i];
        if (segment->type == PT_NOTE) {
            const sj_slice found =
                find_build_id(slice_of(elf->file, segment->offset, segment->file_bytes));
            if (found.size > 0) {
                return found;
            }
        }
    }
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (elf->sections[i].type == SHT_NOTE) {
            const sj_slice found = find_build_id(sj_elf_section_bytes(elf, &elf->sections[i]));
            if (found.size > 0) {
                return found;
            }
        }
    }
    return (sj_slice){0};
}

sj_elf_symbol sj_elf_read_symbol(sj_reader *reader)
{
    sj_elf_symbol symbol = {.name = sj_read_u32(reader)};
    const uint8_t info = sj_read_u8(reader);
    symbol.type = ELF64_ST_TYPE(info);
    symbol.binding = ELF64_ST_BIND(info);
    symbol.other = sj_read_u8(reader);
    symbol.section = sj_read_u16(reader);
    symbol.value = sj_read_u64(reader);
    symbol.size = sj_read_u64(reader);
    return symbol;
}

bool sj_elf_symbol_at(sj_slice table, uint32_t index, sj_elf_symbol *symbol)
{
    if (index >= table.size / sizeof(Elf64_Sym)) {
        return false;
    }
    sj_reader reader =
        sj_reader_of(table.data + (size_t)index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    *symbol = sj_elf_read_symbol(&reader);
    return true;
}

/* Opens the next section of relocations that is loaded. The linker has already applied the
 * relocations of other sections. Returns false if there is none. */
static bool open_next_section(sj_elf_relocations *walk)
{
    const sj_elf *elf = walk->elf;
    while (walk->next_section < elf->section_count) {
        const sj_elf_section *section = &elf->sections[walk->next_section++];
        if (section->type == SHT_RELA && (section->flags & SHF_ALLOC) != 0) {
            const sj_slice bytes = sj_elf_section_bytes(elf, section);
            walk->reader = sj_reader_of(bytes.data, bytes.size);
            walk->symbols = section->link < elf->section_count
                                ? sj_elf_section_bytes(elf, &elf->sections[section->link])
                                : (sj_slice){0};
            return true;
        }
    }
    return false;
}

bool sj_elf_next_relocation(sj_elf_relocations *walk, sj_elf_relocation *relocation)
{
    while (sj_reader_left(&walk->reader) < sizeof(Elf64_Rela)) {
        if (!open_next_section(walk)) {
            return false;
        }
    }
    relocation->place = sj_read_u64(&walk->reader);
    const uint64_t info = sj_read_u64(&walk->reader);
    relocation->addend = sj_read_u64(&walk->reader);
    relocation->type = (uint32_t)info;
    relocation->symbol = (uint32_t)(info >> 32);
    return true;
}
