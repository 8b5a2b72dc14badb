/* Design notes
 *
 * elfutils reads the file and its DWARF. One walk visits the tree of DIEs. It reports inlined
 * functions after the concrete function that contains them, each with its depth of inlining. The
 * depth of the walk is limited, because files are untrusted. */
#include "agent/objfile/symbol_file.h"

#include "proto/base/progress.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST = 200 };

struct sj_symbol_file {
    int descriptor;
    Elf *elf;
    Dwarf *dwarf; /* NULL: the file does not have DWARF */
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    size_t build_id_bytes;
};

/* Position of a DIE in the walk. */
typedef struct die_place {
    uint64_t function; /* address of the concrete function around the DIE; 0: none */
    int inline_depth;
    int depth;
} die_place;

void sj_symbol_file_close(sj_symbol_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->dwarf != NULL) {
        dwarf_end(file->dwarf);
    }
    if (file->elf != NULL) {
        elf_end(file->elf);
    }
    if (file->descriptor >= 0) {
        close(file->descriptor);
    }
    free(file);
}

static sj_status open_elf(sj_symbol_file *file, const char *path, sj_error *error)
{
    const void *build_id = NULL;
    elf_version(EV_CURRENT);
    file->elf = elf_begin(file->descriptor, ELF_C_READ_MMAP, NULL);
    if (file->elf == NULL || elf_kind(file->elf) != ELF_K_ELF) {
        return sj_fail(error, SJ_EUNSUPPORTED, "%s is not an ELF file", path);
    }
    const ssize_t size = dwelf_elf_gnu_build_id(file->elf, &build_id);
    if (size <= 0 || (size_t)size > sizeof(file->build_id)) {
        return sj_fail(error, SJ_EUNSUPPORTED, "%s has no build-id", path);
    }
    memcpy(file->build_id, build_id, (size_t)size);
    file->build_id_bytes = (size_t)size;
    file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    return SJ_OK;
}

sj_status sj_symbol_file_open(const char *path, sj_symbol_file **file, sj_error *error)
{
    sj_symbol_file *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for symbols");
    }
    created->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const sj_status status =
        created->descriptor < 0
            ? sj_fail(error, SJ_ENOTFOUND, "cannot open %s: %s", path, strerror(errno))
            : open_elf(created, path, error);
    if (status != SJ_OK) {
        sj_symbol_file_close(created);
        return status;
    }
    *file = created;
    return SJ_OK;
}

const uint8_t *sj_symbol_file_build_id(const sj_symbol_file *file, size_t *size)
{
    *size = file->build_id_bytes;
    return file->build_id;
}

/* Reports one entry of a symbol table. `*file` is the name in the last STT_FILE entry, because
 * local symbols follow the entry of their source file. */
static sj_status report_symbol(const GElf_Sym *symbol, const char *name, const char **file,
                               const sj_symbol_visitor *visitor)
{
    const int type = GELF_ST_TYPE(symbol->st_info);
    if (type == STT_FILE) {
        *file = name;
    }
    if (type != STT_FUNC || symbol->st_shndx == SHN_UNDEF || name[0] == '\0') {
        return SJ_OK;
    }
    if (visitor->symbol != NULL) {
        SJ_TRY(visitor->symbol(visitor->context, symbol->st_value, name));
    }
    const bool has_file = *file != NULL && **file != '\0' &&
                          GELF_ST_BIND(symbol->st_info) == STB_LOCAL && visitor->source != NULL;
    return has_file ? visitor->source(visitor->context, symbol->st_value, *file) : SJ_OK;
}

static sj_status read_table(const sj_symbol_file *file, Elf_Data *data, const GElf_Shdr *header,
                            const sj_symbol_visitor *visitor)
{
    const uint64_t count = header->sh_size / header->sh_entsize;
    const char *source = NULL;
    for (uint64_t i = 0; i < count && i <= INT32_MAX; ++i) {
        GElf_Sym symbol;
        const char *name = NULL;
        if (gelf_getsym(data, (int)i, &symbol) != NULL) {
            name = elf_strptr(file->elf, header->sh_link, symbol.st_name);
        }
        if (name != NULL) {
            SJ_TRY(report_symbol(&symbol, name, &source, visitor));
        }
    }
    return SJ_OK;
}

static sj_status read_symbols(const sj_symbol_file *file, const sj_symbol_visitor *visitor)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(file->elf, section)) != NULL) {
        GElf_Shdr header;
        Elf_Data *data;
        if (gelf_getshdr(section, &header) == NULL ||
            (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
            header.sh_entsize == 0 || (data = elf_getdata(section, NULL)) == NULL) {
            continue;
        }
        SJ_TRY(read_table(file, data, &header, visitor));
    }
    return SJ_OK;
}

/* Returns a function's name in the symbol table, or its name in the source if DWARF gives no
 * other. */
static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL) {
        name = dwarf_formstring(&attribute);
    }
    if (name == NULL && dwarf_attr_integrate(die, DW_AT_name, &attribute) != NULL) {
        name = dwarf_formstring(&attribute);
    }
    return name;
}

/* Returns the file that an attribute of a DIE refers to, or NULL. DWARF 5 numbers files from 0, but
 * dwarf_decl_file of elfutils 0.188 rejects 0. */
static const char *file_of(Dwarf_Die *die, unsigned int attribute_name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    Dwarf_Half version = 0;
    Dwarf_Die unit;
    Dwarf_Files *files = NULL;
    size_t count = 0;
    return dwarf_attr_integrate(die, attribute_name, &attribute) != NULL &&
                   dwarf_formudata(&attribute, &number) == 0 &&
                   dwarf_cu_die(attribute.cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) !=
                       NULL &&
                   dwarf_getsrcfiles(&unit, &files, &count) == 0 && number < count &&
                   (number != 0 || version >= 5)
               ? dwarf_filesrc(files, number, NULL, NULL)
               : NULL;
}

static sj_status report_function(Dwarf_Die *die, uint64_t address, const sj_symbol_visitor *visitor)
{
    int line = 0;
    const char *file = file_of(die, DW_AT_decl_file);
    const char *name = linkage_name(die);
    if (name != NULL && visitor->symbol != NULL) {
        SJ_TRY(visitor->symbol(visitor->context, address, name));
    }
    return visitor->line != NULL && file != NULL && dwarf_decl_line(die, &line) == 0
               ? visitor->line(visitor->context, address, file, line)
               : SJ_OK;
}

static sj_status report_inlined(Dwarf_Die *die, const die_place *place,
                                const sj_symbol_visitor *visitor)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0;
    const char *file = file_of(die, DW_AT_call_file);
    const char *name = linkage_name(die);
    if (dwarf_attr(die, DW_AT_call_line, &attribute) != NULL) {
        dwarf_formudata(&attribute, &line);
    }
    return name != NULL
               ? visitor->inlined(visitor->context, place->function, place->inline_depth, name,
                                  file != NULL ? file : "", line > INT32_MAX ? 0 : (int)line)
               : SJ_OK;
}

/* Reports the functions and inlined calls in a DIE and below it. */
static sj_status walk_functions(Dwarf_Die *die, die_place place, const sj_symbol_visitor *visitor)
{
    Dwarf_Die child;
    Dwarf_Addr address = 0;
    const int tag = dwarf_tag(die);
    if (tag == DW_TAG_subprogram && dwarf_entrypc(die, &address) == 0 && address != 0) {
        place.function = address;
        place.inline_depth = 0;
        SJ_TRY(report_function(die, address, visitor));
    } else if (tag == DW_TAG_inlined_subroutine && place.function != 0 &&
               visitor->inlined != NULL) {
        ++place.inline_depth;
        SJ_TRY(report_inlined(die, &place, visitor));
    }
    if (++place.depth > DEEPEST || dwarf_child(die, &child) != 0) {
        return SJ_OK;
    }
    do {
        SJ_TRY(walk_functions(&child, place, visitor));
    } while (dwarf_siblingof(&child, &child) == 0);
    return SJ_OK;
}

/* Returns the offset after the last unit, or 0 if nothing watches the progress. */
static uint64_t end_of_units(Dwarf *dwarf)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header_bytes = 0;
    while (sj_progress_is_watched() &&
           dwarf_nextcu(dwarf, offset, &next, &header_bytes, NULL, NULL, NULL) == 0) {
        offset = next;
    }
    return offset;
}

sj_status sj_symbol_file_read(sj_symbol_file *file, const sj_symbol_visitor *visitor)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header_bytes = 0;
    SJ_TRY(read_symbols(file, visitor));
    if (file->dwarf == NULL) {
        return SJ_OK;
    }
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin(end_of_units(file->dwarf));
    while (status == SJ_OK &&
           dwarf_nextcu(file->dwarf, offset, &next, &header_bytes, NULL, NULL, NULL) == 0) {
        Dwarf_Die unit;
        if (dwarf_offdie(file->dwarf, offset + header_bytes, &unit) != NULL) {
            status = walk_functions(&unit, (die_place){0}, visitor);
        }
        offset = next;
        sj_progress_reach(work, offset);
    }
    sj_progress_end(work);
    return status;
}

/* Finds the compilation unit of an address by .debug_aranges. If that fails, searches all units,
 * because clang does not write .debug_aranges. */
static bool find_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header_bytes = 0;
    if (dwarf_addrdie(dwarf, address, unit) != NULL) {
        return true;
    }
    while (dwarf_nextcu(dwarf, offset, &next, &header_bytes, NULL, NULL, NULL) == 0) {
        if (dwarf_offdie(dwarf, offset + header_bytes, unit) != NULL &&
            dwarf_haspc(unit, address) == 1) {
            return true;
        }
        offset = next;
    }
    return false;
}

bool sj_symbol_file_has_lines(const sj_symbol_file *file)
{
    return file->dwarf != NULL;
}

sj_status sj_symbol_file_line(sj_symbol_file *file, uint64_t address, const char **path, int *line)
{
    Dwarf_Die unit;
    Dwarf_Die *scopes = NULL;
    sj_status status = SJ_ENOTFOUND;
    if (file->dwarf == NULL || !find_unit(file->dwarf, address, &unit)) {
        return SJ_ENOTFOUND;
    }
    const int count = dwarf_getscopes(&unit, address, &scopes);
    for (int i = 0; i < count && status != SJ_OK; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram) {
            *path = file_of(&scopes[i], DW_AT_decl_file);
            status = *path != NULL && dwarf_decl_line(&scopes[i], line) == 0 ? SJ_OK : SJ_ENOTFOUND;
        }
    }
    free(scopes);
    return status;
}
