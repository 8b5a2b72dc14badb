/* Design notes
 *
 * The skeleton unit in the program has the addresses of a split unit. libdw links the two only if
 * it finds the split unit's file by the name in the skeleton. So this code rewrites the skeletons
 * into an ELF file in memory, with the program's addresses and ranges. All rewritten skeletons name
 * the same descriptor in /proc. Before libdw opens that name, this code replaces the descriptor by
 * a memory file with the skeleton's unit. libdw keeps the files that it has mapped. */
#include "agent/objfile/split_dwarf.h"

#include "agent/objfile/elf_image.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GNU_VERSION = 4, DWARF_VERSION = 5, ADDRESS_BYTES = 8, OFFSET_BYTES = 4, NAME_BYTES = 32 };

struct sj_split_dwarf {
    sj_split_package *package;
    sj_byte_buffer image; /* ELF file of the rewritten skeletons */
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CU *unit; /* the skeleton that was read last */
    int descriptor; /* the skeletons name it by its path in /proc */
};

/* Returns the value of one of two attributes, or 0 if the DIE has neither. `name` 0 means no second
 * attribute. */
static uint64_t offset_attribute(Dwarf_Die *die, unsigned gnu_name, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    const bool has_value = dwarf_attr(die, gnu_name, &attribute) != NULL ||
                           (name != 0 && dwarf_attr(die, name, &attribute) != NULL);
    return has_value && dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

sj_split_skeleton sj_split_skeleton_of(Dwarf_CU *unit)
{
    sj_split_skeleton skeleton = {0};
    Dwarf_Half version = 0;
    Dwarf_Die die;
    Dwarf_Addr base = 0;
    if (dwarf_cu_info(unit, &version, NULL, &die, NULL, &skeleton.id, NULL, NULL) == 0) {
        skeleton.is_gnu = version < DWARF_VERSION;
        skeleton.base_address = dwarf_lowpc(&die, &base) == 0 ? base : 0;
        skeleton.addresses = offset_attribute(&die, DW_AT_GNU_addr_base, DW_AT_addr_base);
        skeleton.ranges = offset_attribute(&die, DW_AT_GNU_ranges_base, 0);
    }
    return skeleton;
}

static void put_abbrev(sj_byte_buffer *to, uint64_t code, uint64_t tag, const uint16_t *pairs,
                       size_t count)
{
    sj_byte_buffer_put_varint(to, code);
    sj_byte_buffer_put_varint(to, tag);
    sj_byte_buffer_put_number(to, DW_CHILDREN_no, 1);
    for (size_t i = 0; i < count; i++) {
        sj_byte_buffer_put_varint(to, pairs[i]);
    }
    sj_byte_buffer_put_number(to, 0, 2);
}

/* Writes the two abbreviations of skeletons. The code of each is its DWARF version. */
static void put_abbrevs(sj_byte_buffer *to)
{
    static const uint16_t gnu[] = {DW_AT_low_pc,       DW_FORM_addr,          DW_AT_GNU_addr_base,
                                   DW_FORM_sec_offset, DW_AT_GNU_ranges_base, DW_FORM_sec_offset,
                                   DW_AT_GNU_dwo_name, DW_FORM_string,        DW_AT_GNU_dwo_id,
                                   DW_FORM_data8};
    static const uint16_t dwarf[] = {DW_AT_low_pc,       DW_FORM_addr,   DW_AT_addr_base,
                                     DW_FORM_sec_offset, DW_AT_dwo_name, DW_FORM_string};
    put_abbrev(to, GNU_VERSION, DW_TAG_compile_unit, gnu, sizeof(gnu) / sizeof(gnu[0]));
    put_abbrev(to, DWARF_VERSION, DW_TAG_skeleton_unit, dwarf, sizeof(dwarf) / sizeof(dwarf[0]));
    sj_byte_buffer_put_number(to, 0, 1);
}

static void put_skeleton(sj_byte_buffer *to, const sj_split_skeleton *skeleton, const char *name)
{
    const unsigned version = skeleton->is_gnu ? GNU_VERSION : DWARF_VERSION;
    const size_t start = to->size;
    sj_byte_buffer_put_number(to, 0, OFFSET_BYTES); /* length */
    sj_byte_buffer_put_number(to, version, 2);
    if (skeleton->is_gnu) {
        sj_byte_buffer_put_number(to, 0, OFFSET_BYTES); /* offset of the abbreviations */
        sj_byte_buffer_put_number(to, ADDRESS_BYTES, 1);
    } else {
        sj_byte_buffer_put_number(to, DW_UT_skeleton, 1);
        sj_byte_buffer_put_number(to, ADDRESS_BYTES, 1);
        sj_byte_buffer_put_number(to, 0, OFFSET_BYTES);
        sj_byte_buffer_put_number(to, skeleton->id, sizeof(skeleton->id));
    }
    sj_byte_buffer_put_varint(to, version); /* code of its abbreviation */
    sj_byte_buffer_put_number(to, skeleton->base_address, ADDRESS_BYTES);
    sj_byte_buffer_put_number(to, skeleton->addresses, OFFSET_BYTES);
    if (skeleton->is_gnu) {
        sj_byte_buffer_put_number(to, skeleton->ranges, OFFSET_BYTES);
    }
    sj_byte_buffer_put(to, name, strlen(name) + 1);
    if (skeleton->is_gnu) {
        sj_byte_buffer_put_number(to, skeleton->id, sizeof(skeleton->id));
    }
    if (!to->failed) {
        sj_byte_buffer_set(to, start, to->size - start - OFFSET_BYTES, OFFSET_BYTES);
    }
}

static sj_slice slice_of(const sj_byte_buffer *buffer)
{
    return (sj_slice){.data = buffer->bytes, .size = buffer->size};
}

static sj_status write_skeletons(sj_split_dwarf *dwarf, Elf *program,
                                 const sj_split_skeleton *skeletons, size_t count)
{
    GElf_Ehdr header;
    char name[NAME_BYTES];
    sj_byte_buffer info = {0};
    sj_byte_buffer abbrevs = {0};
    snprintf(name, sizeof(name), "/proc/self/fd/%d", dwarf->descriptor);
    put_abbrevs(&abbrevs);
    for (size_t i = 0; i < count; i++) {
        put_skeleton(&info, &skeletons[i], name);
    }
    const sj_elf_image_section sections[] = {
        {.name = ".debug_info", .bytes = slice_of(&info)},
        {.name = ".debug_abbrev", .bytes = slice_of(&abbrevs)},
        {.name = ".debug_addr", .bytes = sj_elf_debug_section(program, ".debug_addr")},
        {.name = ".debug_ranges", .bytes = sj_elf_debug_section(program, ".debug_ranges")},
    };
    dwarf->image.failed = info.failed || abbrevs.failed;
    if (!dwarf->image.failed && gelf_getehdr(program, &header) != NULL) {
        sj_elf_image_write(&dwarf->image, header.e_machine, sections,
                           sizeof(sections) / sizeof(sections[0]));
    }
    sj_byte_buffer_deinit(&info);
    sj_byte_buffer_deinit(&abbrevs);
    return dwarf->image.failed ? SJ_ENOMEM : SJ_OK;
}

static sj_status open_skeletons(sj_split_dwarf *dwarf)
{
    dwarf->elf = elf_memory((char *)dwarf->image.bytes, dwarf->image.size);
    dwarf->dwarf = dwarf->elf != NULL ? dwarf_begin_elf(dwarf->elf, DWARF_C_READ, NULL) : NULL;
    return dwarf->dwarf != NULL ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_split_dwarf_new(sj_split_package *package, Elf *elf,
                             const sj_split_skeleton *skeletons, size_t count,
                             sj_split_dwarf **dwarf)
{
    sj_split_dwarf *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    created->package = package;
    created->descriptor = memfd_create("sojourn-unit", MFD_CLOEXEC);
    sj_status status =
        created->descriptor < 0 ? SJ_EIO : write_skeletons(created, elf, skeletons, count);
    if (status == SJ_OK) {
        status = open_skeletons(created);
    }
    if (status != SJ_OK) {
        sj_split_dwarf_free(created);
        return status;
    }
    *dwarf = created;
    return SJ_OK;
}

void sj_split_dwarf_free(sj_split_dwarf *dwarf)
{
    if (dwarf == NULL) {
        return;
    }
    if (dwarf->dwarf != NULL) {
        dwarf_end(dwarf->dwarf);
    }
    if (dwarf->elf != NULL) {
        elf_end(dwarf->elf);
    }
    if (dwarf->descriptor >= 0) {
        close(dwarf->descriptor);
    }
    sj_byte_buffer_deinit(&dwarf->image);
    free(dwarf);
}

/* Replaces the descriptor that the skeletons name by a memory file with these bytes. */
static sj_status replace_file(const sj_split_dwarf *dwarf, const sj_byte_buffer *bytes)
{
    size_t written = 0;
    const int file = memfd_create("sojourn-unit", MFD_CLOEXEC);
    if (file < 0) {
        return SJ_EIO;
    }
    while (written < bytes->size) {
        const ssize_t count = write(file, bytes->bytes + written, bytes->size - written);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        written += (size_t)count;
    }
    const bool is_replaced =
        written == bytes->size && dup3(file, dwarf->descriptor, O_CLOEXEC) == dwarf->descriptor;
    close(file);
    return is_replaced ? SJ_OK : SJ_EIO;
}

sj_status sj_split_dwarf_next(sj_split_dwarf *dwarf, Dwarf_Die *unit)
{
    uint64_t id = 0;
    sj_byte_buffer file = {0};
    if (dwarf_get_units(dwarf->dwarf, dwarf->unit, &dwarf->unit, NULL, NULL, NULL, NULL) != 0 ||
        dwarf_cu_info(dwarf->unit, NULL, NULL, NULL, NULL, &id, NULL, NULL) != 0) {
        return SJ_ECLOSED;
    }
    sj_status status = sj_split_package_extract(dwarf->package, id, &file);
    if (status == SJ_OK) {
        status = replace_file(dwarf, &file);
    }
    sj_byte_buffer_deinit(&file);
    SJ_TRY(status);
    return dwarf_cu_info(dwarf->unit, NULL, NULL, NULL, unit, NULL, NULL, NULL) == 0 &&
                   dwarf_tag(unit) != DW_TAG_invalid
               ? SJ_OK
               : SJ_ECORRUPT;
}
