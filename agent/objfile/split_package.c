/* Design notes
 *
 * A package concatenates the sections of .dwo files. Offsets in a unit count from the beginning of
 * its part of each section. So the parts of one unit, each as a section, are a .dwo file. Only the
 * strings are shared by all units: an extracted file gets the strings whose offsets its unit has.
 *
 * The package contains each type unit (-fdebug-types-section) once, with the abbreviations and
 * string offsets of the .dwo file that it came from. A unit refers to a type unit by its signature:
 * eight bytes anywhere in the unit. The string offsets of such a type unit are appended to those of
 * the unit. Its abbreviations get one more attribute, DW_AT_str_offsets_base, which says where its
 * string offsets begin. The attribute does not occupy bytes in the unit. */
#include "agent/objfile/split_package.h"

#include "agent/objfile/elf_image.h"
#include "proto/base/array.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_EXTRACTED_BYTES = 1 << 30,
    MOST_ORIGINS = 4096,
    VERSION_AT = 4,          /* offset in the header of a unit of 32-bit DWARF */
    GNU_ABBREV_AT = 6,       /* until version 4 */
    ABBREV_AT = 8,           /* in version 5 */
    STR_OFFSETS_HEADER = 8,  /* in version 5 */
    WIDE_LENGTH = UINT32_MAX /* 64-bit DWARF */
};

struct sj_split_package {
    int descriptor;
    Elf *elf;
    uint16_t machine;
    sj_slice sections[SJ_SPLIT_SECTIONS];
    sj_slice strings;
    sj_split_index units;
    sj_split_index types;
    uint32_t *used_by; /* number of the last extraction that used each type unit */
    uint32_t extractions;
    uint64_t extracted_bytes; /* includes inflated bytes */
    bool is_read;             /* read_contents was called, with the result `contents` */
    sj_status contents;
};

/* Abbreviations and string offsets of one .dwo file that type units came from. */
typedef struct origin {
    uint64_t abbrevs;     /* offset in the package's section */
    uint32_t str_offsets; /* offset in the package's section */
    uint32_t new_abbrevs; /* offset in the extracted file's section */
} origin;

/* The file that is being extracted. */
typedef struct extraction {
    sj_split_package *package;
    const sj_split_unit *unit;
    sj_byte_buffer sections[SJ_SPLIT_SECTIONS];
    sj_byte_buffer strings;
    origin *origins;
    size_t origin_count;
    size_t origin_capacity;
} extraction;

static const char *const names[SJ_SPLIT_SECTIONS] = {
    [SJ_SPLIT_INFO] = ".debug_info.dwo",         [SJ_SPLIT_TYPES] = ".debug_types.dwo",
    [SJ_SPLIT_ABBREV] = ".debug_abbrev.dwo",     [SJ_SPLIT_LOC] = ".debug_loc.dwo",
    [SJ_SPLIT_LOCLISTS] = ".debug_loclists.dwo", [SJ_SPLIT_STR_OFFSETS] = ".debug_str_offsets.dwo",
    [SJ_SPLIT_RNGLISTS] = ".debug_rnglists.dwo",
};

/* Adds extracted or inflated bytes to the count. Returns false if the limit is exceeded. */
static bool add_bytes(uint64_t *extracted, uint64_t bytes)
{
    if (*extracted > MOST_EXTRACTED_BYTES || bytes > MOST_EXTRACTED_BYTES - *extracted) {
        *extracted = MOST_EXTRACTED_BYTES + UINT64_C(1);
        return false;
    }
    *extracted += bytes;
    return true;
}

/* Decompresses a section in place. Returns SJ_ECORRUPT if it is damaged. Returns SJ_ELIMIT, and
 * does nothing, if the bytes would exceed the limit. */
static sj_status inflate_section(Elf_Scn *section, const GElf_Shdr *header, uint64_t *extracted)
{
    GElf_Chdr compressed;
    if ((header->sh_flags & SHF_COMPRESSED) == 0) {
        return SJ_OK;
    }
    if (gelf_getchdr(section, &compressed) == NULL) {
        return SJ_ECORRUPT;
    }
    if (!add_bytes(extracted, compressed.ch_size)) {
        return SJ_ELIMIT;
    }
    return elf_compress(section, 0, 0) >= 0 ? SJ_OK : SJ_ECORRUPT;
}

/* Reads the first readable section of that name. `*bytes` is empty if there is none. Returns
 * SJ_ELIMIT if the bytes would exceed the limit. */
static sj_status read_section(Elf *elf, const char *name, uint64_t *extracted, sj_slice *bytes)
{
    size_t strings = 0;
    Elf_Scn *section = NULL;
    *bytes = (sj_slice){0};
    if (elf_getshdrstrndx(elf, &strings) != 0) {
        return SJ_OK;
    }
    while (bytes->size == 0 && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS) {
            continue;
        }
        const char *found = elf_strptr(elf, strings, header.sh_name);
        if (found == NULL || strcmp(found, name) != 0) {
            continue;
        }
        const sj_status status = inflate_section(section, &header, extracted);
        const Elf_Data *data = status == SJ_OK ? elf_rawdata(section, NULL) : NULL;
        if (status == SJ_ELIMIT) {
            return status;
        }
        if (data != NULL && data->d_buf != NULL) {
            *bytes = (sj_slice){.data = data->d_buf, .size = data->d_size};
        }
    }
    return SJ_OK;
}

sj_slice sj_elf_debug_section(Elf *elf, const char *name)
{
    uint64_t inflated = 0;
    sj_slice bytes;
    return read_section(elf, name, &inflated, &bytes) == SJ_OK ? bytes : (sj_slice){0};
}

static sj_status read_package_section(sj_split_package *package, const char *name, sj_slice *bytes)
{
    return read_section(package->elf, name, &package->extracted_bytes, bytes);
}

static sj_status read_package(sj_split_package *package)
{
    GElf_Ehdr header;
    sj_slice units;
    elf_version(EV_CURRENT);
    package->elf = elf_begin(package->descriptor, ELF_C_READ_MMAP, NULL);
    if (package->elf == NULL || gelf_getehdr(package->elf, &header) == NULL ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        return SJ_ECORRUPT;
    }
    package->machine = header.e_machine;
    SJ_TRY(read_package_section(package, ".debug_cu_index", &units));
    return units.size != 0 ? sj_split_index_read(units, &package->units) : SJ_ECORRUPT;
}

/* Reads the sections that contain parts of units. The first extraction calls it, so that an unused
 * package needs no memory for inflated sections. */
static sj_status read_contents(sj_split_package *package)
{
    sj_slice types;
    for (unsigned i = 0; i < SJ_SPLIT_SECTIONS; i++) {
        SJ_TRY(read_package_section(package, names[i], &package->sections[i]));
    }
    SJ_TRY(read_package_section(package, ".debug_str.dwo", &package->strings));
    SJ_TRY(read_package_section(package, ".debug_tu_index", &types));
    SJ_TRY(sj_split_index_read(types, &package->types));
    package->used_by = calloc(package->types.count + 1, sizeof(*package->used_by));
    return package->used_by != NULL ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_split_package_open(const char *path, sj_split_package **package)
{
    sj_split_package *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    created->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const sj_status status = created->descriptor < 0 ? SJ_ENOTFOUND : read_package(created);
    if (status != SJ_OK) {
        sj_split_package_close(created);
        return status;
    }
    *package = created;
    return SJ_OK;
}

void sj_split_package_close(sj_split_package *package)
{
    if (package == NULL) {
        return;
    }
    if (package->elf != NULL) {
        elf_end(package->elf);
    }
    if (package->descriptor >= 0) {
        close(package->descriptor);
    }
    sj_split_index_deinit(&package->units);
    sj_split_index_deinit(&package->types);
    free(package->used_by);
    free(package);
}

bool sj_split_package_has(const sj_split_package *package, uint64_t id)
{
    return sj_split_index_find(&package->units, id) != NULL;
}

/* Finds a unit's part of a section. Returns false if the part exceeds the section. */
static bool find_part(const sj_split_package *package, const sj_split_unit *unit,
                      sj_split_section section, sj_slice *bytes)
{
    const sj_split_part part = unit->parts[section];
    const sj_slice whole = package->sections[section];
    *bytes = (sj_slice){0};
    if (part.size == 0) {
        return true;
    }
    if (part.offset > whole.size || part.size > whole.size - part.offset) {
        return false;
    }
    *bytes = (sj_slice){.data = whole.data + part.offset, .size = part.size};
    return true;
}

/* Reads the version of the unit at the beginning of a part. Returns 0 if the part is too short, and
 * for 64-bit DWARF, which compilers do not write by default. */
static unsigned read_version(sj_slice part)
{
    sj_reader reader = sj_reader_of(part.data, part.size);
    const bool is_wide = sj_read_u32(&reader) == WIDE_LENGTH;
    const unsigned version = sj_read_u16(&reader);
    return reader.bad || is_wide ? 0 : version;
}

/* Copies a string of the package and writes its new offset. If the string does not end within the
 * section, writes an invalid offset. */
static sj_status put_string(extraction *extracted, uint32_t offset)
{
    sj_byte_buffer *offsets = &extracted->sections[SJ_SPLIT_STR_OFFSETS];
    const sj_slice strings = extracted->package->strings;
    const uint8_t *start = offset < strings.size ? strings.data + offset : NULL;
    const uint8_t *end = start != NULL ? memchr(start, 0, strings.size - offset) : NULL;
    const size_t size = end != NULL ? (size_t)(end - start) + 1 : 0;
    const size_t searched = start != NULL && end == NULL ? strings.size - offset : size;
    sj_byte_buffer_put_number(offsets, size != 0 ? extracted->strings.size : UINT32_MAX,
                              sizeof(uint32_t));
    if (!add_bytes(&extracted->package->extracted_bytes, searched + sizeof(uint32_t))) {
        return SJ_ELIMIT;
    }
    sj_byte_buffer_put(&extracted->strings, start, size);
    return SJ_OK;
}

/* Copies the strings whose offsets a unit has. Sets `*base` to the position of the first offset in
 * the new section. */
static sj_status put_strings(extraction *extracted, const sj_split_unit *unit, unsigned version,
                             size_t *base)
{
    sj_slice part;
    sj_byte_buffer *offsets = &extracted->sections[SJ_SPLIT_STR_OFFSETS];
    if (!find_part(extracted->package, unit, SJ_SPLIT_STR_OFFSETS, &part)) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(part.data, part.size);
    if (version >= 5 && part.size != 0) {
        sj_byte_buffer_put(offsets, sj_read_bytes(&reader, STR_OFFSETS_HEADER),
                           reader.bad ? 0 : STR_OFFSETS_HEADER);
    }
    *base = offsets->size;
    while (!reader.bad && sj_reader_left(&reader) >= sizeof(uint32_t)) {
        SJ_TRY(put_string(extracted, sj_read_u32(&reader)));
    }
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

/* Copies the part of an abbreviation after its code. An abbreviation of a type unit's DIE gets one
 * more attribute: where its string offsets begin. */
static void copy_declaration(sj_reader *reader, size_t base, sj_byte_buffer *to)
{
    const uint64_t tag = sj_read_varint(reader);
    sj_byte_buffer_put_varint(to, tag);
    sj_byte_buffer_put_number(to, sj_read_u8(reader), 1);
    for (;;) {
        const uint64_t name = sj_read_varint(reader);
        const uint64_t form = sj_read_varint(reader);
        if (reader->bad || (name == 0 && form == 0)) {
            break;
        }
        sj_byte_buffer_put_varint(to, name);
        sj_byte_buffer_put_varint(to, form);
        while (form == DW_FORM_implicit_const && !reader->bad) { /* the constant, a signed LEB128 */
            const uint8_t byte = sj_read_u8(reader);
            sj_byte_buffer_put_number(to, byte, 1);
            if (byte < 0x80) {
                break;
            }
        }
    }
    if (tag == DW_TAG_type_unit) {
        sj_byte_buffer_put_varint(to, DW_AT_str_offsets_base);
        sj_byte_buffer_put_varint(to, DW_FORM_implicit_const);
        /* A signed LEB128 of five bytes. Bit 6 of the last byte is the sign, so it must be 0. */
        sj_byte_buffer_put_number(to, 0x80 | (base & 0x7f), 1);
        sj_byte_buffer_put_number(to, 0x80 | (base >> 7 & 0x7f), 1);
        sj_byte_buffer_put_number(to, 0x80 | (base >> 14 & 0x7f), 1);
        sj_byte_buffer_put_number(to, 0x80 | (base >> 21 & 0x7f), 1);
        sj_byte_buffer_put_number(to, base >> 28 & 0x3f, 1);
    }
    sj_byte_buffer_put_varint(to, 0);
    sj_byte_buffer_put_varint(to, 0);
}

static sj_status copy_abbrevs(sj_slice table, size_t base, sj_byte_buffer *to)
{
    sj_reader reader = sj_reader_of(table.data, table.size);
    for (;;) {
        const uint64_t code = sj_read_varint(&reader);
        if (reader.bad) {
            return SJ_ECORRUPT;
        }
        sj_byte_buffer_put_varint(to, code);
        if (code == 0) {
            return SJ_OK;
        }
        copy_declaration(&reader, base, to);
    }
}

/* Copies the abbreviations and strings of a type unit, unless they were copied before. Sets
 * `*place` to the new offset of the abbreviations. */
static sj_status copy_origin(extraction *extracted, const sj_split_unit *type, sj_slice table,
                             unsigned version, uint32_t *place)
{
    size_t base;
    const sj_slice section = extracted->package->sections[SJ_SPLIT_ABBREV];
    const origin wanted = {.abbrevs = (uint64_t)(table.data - section.data),
                           .str_offsets = type->parts[SJ_SPLIT_STR_OFFSETS].offset,
                           .new_abbrevs = (uint32_t)extracted->sections[SJ_SPLIT_ABBREV].size};
    for (size_t i = 0; i < extracted->origin_count; i++) {
        if (extracted->origins[i].abbrevs == wanted.abbrevs &&
            extracted->origins[i].str_offsets == wanted.str_offsets) {
            *place = extracted->origins[i].new_abbrevs;
            return SJ_OK;
        }
    }
    if (extracted->origin_count == MOST_ORIGINS ||
        !add_bytes(&extracted->package->extracted_bytes, table.size)) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&extracted->origins, &extracted->origin_capacity,
                            extracted->origin_count, 1, sizeof(*extracted->origins)));
    SJ_TRY(put_strings(extracted, type, version, &base));
    SJ_TRY(copy_abbrevs(table, base, &extracted->sections[SJ_SPLIT_ABBREV]));
    extracted->origins[extracted->origin_count++] = wanted;
    *place = wanted.new_abbrevs;
    return SJ_OK;
}

/* Appends a type unit, its abbreviations and its strings to the file. */
static sj_status add_type(extraction *extracted, const sj_split_unit *type)
{
    sj_slice part;
    sj_slice abbrevs;
    uint32_t place = 0;
    const sj_split_section section =
        type->parts[SJ_SPLIT_TYPES].size != 0 ? SJ_SPLIT_TYPES : SJ_SPLIT_INFO;
    if (!find_part(extracted->package, type, section, &part) ||
        !find_part(extracted->package, type, SJ_SPLIT_ABBREV, &abbrevs)) {
        return SJ_ECORRUPT;
    }
    const unsigned version = read_version(part);
    const size_t at = version >= 5 ? ABBREV_AT : GNU_ABBREV_AT;
    if (version == 0 || part.size < at + sizeof(uint32_t)) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(part.data + at, sizeof(uint32_t));
    const uint32_t offset = sj_read_u32(&reader);
    if (offset >= abbrevs.size) {
        return SJ_ECORRUPT;
    }
    if (!add_bytes(&extracted->package->extracted_bytes, part.size)) {
        return SJ_ELIMIT;
    }
    const sj_slice table = {.data = abbrevs.data + offset, .size = abbrevs.size - offset};
    SJ_TRY(copy_origin(extracted, type, table, version, &place));
    sj_byte_buffer *units = &extracted->sections[section];
    const size_t start = units->size;
    sj_byte_buffer_put(units, part.data, part.size);
    if (!units->failed) {
        sj_byte_buffer_set(units, start + at, place, sizeof(place));
    }
    return SJ_OK;
}

/* Adds the type units whose signatures occur in a section of the file at or after `*at`. Advances
 * `*at`. */
static sj_status add_types(extraction *extracted, sj_split_section section, size_t *at)
{
    sj_split_package *package = extracted->package;
    const sj_byte_buffer *units = &extracted->sections[section];
    for (; !units->failed && units->size - *at >= sizeof(uint64_t); ++*at) {
        uint64_t id;
        memcpy(&id, units->bytes + *at, sizeof(id));
        const sj_split_unit *type = sj_split_index_find(&package->types, id);
        if (type != NULL && package->used_by[type - package->types.units] != package->extractions) {
            package->used_by[type - package->types.units] = package->extractions;
            SJ_TRY(add_type(extracted, type));
        }
    }
    return SJ_OK;
}

/* Adds type units until the added units refer to no further ones. */
static sj_status add_all_types(extraction *extracted)
{
    size_t scanned[2] = {0, 0};
    size_t before;
    if (extracted->package->types.count == 0) {
        return SJ_OK;
    }
    do {
        before = scanned[0] + scanned[1];
        SJ_TRY(add_types(extracted, SJ_SPLIT_INFO, &scanned[0]));
        SJ_TRY(add_types(extracted, SJ_SPLIT_TYPES, &scanned[1]));
    } while (scanned[0] + scanned[1] != before);
    return SJ_OK;
}

/* Appends the parts, the strings and the type units of the extracted unit. */
static sj_status put_unit(extraction *extracted)
{
    static const sj_split_section whole[] = {SJ_SPLIT_INFO, SJ_SPLIT_ABBREV, SJ_SPLIT_LOC,
                                             SJ_SPLIT_LOCLISTS, SJ_SPLIT_RNGLISTS};
    sj_slice part;
    size_t base;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (!find_part(extracted->package, extracted->unit, whole[i], &part)) {
            return SJ_ECORRUPT;
        }
        if (!add_bytes(&extracted->package->extracted_bytes, part.size)) {
            return SJ_ELIMIT;
        }
        sj_byte_buffer_put(&extracted->sections[whole[i]], part.data, part.size);
    }
    (void)find_part(extracted->package, extracted->unit, SJ_SPLIT_INFO, &part);
    const unsigned version = read_version(part);
    SJ_TRY(version == 0 ? SJ_ECORRUPT : put_strings(extracted, extracted->unit, version, &base));
    return add_all_types(extracted);
}

static void write_file(extraction *extracted, sj_byte_buffer *file)
{
    sj_elf_image_section sections[SJ_SPLIT_SECTIONS + 1];
    file->failed = file->failed || extracted->strings.failed;
    for (unsigned i = 0; i < SJ_SPLIT_SECTIONS; i++) {
        const sj_byte_buffer *bytes = &extracted->sections[i];
        sections[i] = (sj_elf_image_section){.name = names[i],
                                             .bytes = {.data = bytes->bytes, .size = bytes->size}};
        file->failed = file->failed || bytes->failed;
    }
    sections[SJ_SPLIT_SECTIONS] = (sj_elf_image_section){
        .name = ".debug_str.dwo",
        .bytes = {.data = extracted->strings.bytes, .size = extracted->strings.size}};
    if (!file->failed) {
        sj_elf_image_write(file, extracted->package->machine, sections, SJ_SPLIT_SECTIONS + 1);
    }
}

sj_status sj_split_package_extract(sj_split_package *package, uint64_t id, sj_byte_buffer *file)
{
    extraction extracted = {.package = package, .unit = sj_split_index_find(&package->units, id)};
    if (extracted.unit == NULL) {
        return SJ_ENOTFOUND;
    }
    if (!package->is_read) {
        package->is_read = true;
        package->contents = read_contents(package);
    }
    SJ_TRY(package->contents);
    package->extractions++;
    const sj_status status = put_unit(&extracted);
    if (status == SJ_OK) {
        write_file(&extracted, file);
    }
    for (unsigned i = 0; i < SJ_SPLIT_SECTIONS; i++) {
        sj_byte_buffer_deinit(&extracted.sections[i]);
    }
    sj_byte_buffer_deinit(&extracted.strings);
    free(extracted.origins);
    return status != SJ_OK ? status : file->failed ? SJ_ENOMEM : SJ_OK;
}
