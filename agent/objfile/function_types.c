/* Design notes
 *
 * In optimized code, DWARF names the register that holds a parameter at the entry. This code uses
 * that register. In other code, DWARF names a place in memory, to which the function stores the
 * parameter after the entry. There this code uses the registers of the calling convention. All
 * functions that other units can call follow the convention. A compiler may change it for functions
 * that only their own unit can call. gcc then gives the function another symbol (.constprop,
 * .isra). clang keeps the symbol, but omits the locations of the parameters. */
#include "agent/objfile/function_types.h"

#include "agent/objfile/debug_file.h"
#include "agent/objfile/elf_machine.h"
#include "agent/objfile/split_dwarf.h"
#include "agent/objfile/typed_values.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEEPEST = 64, MOST_PARAMETERS = 64, WORD_BYTES = 8 };

typedef struct typed_entry {
    uint64_t address;
    Dwarf_Die die;
} typed_entry;

struct sj_function_types {
    int descriptor;
    Elf *elf;
    Dwarf *dwarf;
    bool is_aapcs;
    sj_split_state split;
    sj_split_skeleton *missing; /* skeletons of units whose .dwo files are missing */
    size_t missing_count;
    size_t missing_capacity;
    sj_split_package *package; /* the package that contains these units; NULL: none */
    sj_split_dwarf *packaged;  /* reader of these units */
    typed_entry *entries;      /* sorted by address */
    size_t count;
    size_t capacity;
    uint64_t *globals; /* addresses of functions that other modules or units can call, sorted */
    size_t global_count;
    size_t global_capacity;
};

/* A parameter of the function that is being described. */
typedef struct parameter {
    Dwarf_Die die; /* DIE that has its name and type */
    Dwarf_Die type;
    bool has_type;
    sj_entry_state entry;
    sj_parameter_place location;   /* the place that DWARF gives */
    sj_parameter_place convention; /* the place that the calling convention gives */
} parameter;

typedef struct function_reader {
    Dwarf_Die *die;
    Dwarf_Die origin; /* the DIE whose children are the parameters in source order */
    bool has_origin;
    int language;
    bool is_aapcs;
    bool is_global;
    bool is_by_convention; /* the function follows the calling convention */
    bool is_llvm;
    bool is_optimized;
    uint64_t entry;
    sj_register_use use;
    size_t count;
    parameter parameters[MOST_PARAMETERS];
} function_reader;

/* Sets `*address` to the entry of a function, or to the start of its first part. Returns false if
 * DWARF gives neither. */
static bool find_address(Dwarf_Die *die, Dwarf_Addr *address)
{
    Dwarf_Addr base = 0;
    Dwarf_Addr end = 0;
    return dwarf_entrypc(die, address) == 0 || dwarf_ranges(die, 0, &base, address, &end) > 0;
}

static sj_status add_function(sj_function_types *types, Dwarf_Die *die)
{
    Dwarf_Addr address = 0;
    if (!find_address(die, &address) || address == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&types->entries, &types->capacity, types->count, 1,
                            sizeof(*types->entries)));
    types->entries[types->count++] = (typed_entry){.address = address, .die = *die};
    return SJ_OK;
}

/* Adds the functions that are defined in a DIE: a unit, namespace, class, block or function. */
static sj_status add_functions(sj_function_types *types, Dwarf_Die *die, int depth)
{
    Dwarf_Die child;
    const int tag = dwarf_tag(die);
    if (tag == DW_TAG_subprogram) {
        SJ_TRY(add_function(types, die));
    } else if (tag != DW_TAG_compile_unit && tag != DW_TAG_partial_unit &&
               tag != DW_TAG_namespace && tag != DW_TAG_module && tag != DW_TAG_lexical_block &&
               !sj_type_is_structure(tag)) {
        return SJ_OK;
    }
    if (depth > DEEPEST || dwarf_child(die, &child) != 0) {
        return SJ_OK;
    }
    do {
        SJ_TRY(add_functions(types, &child, depth + 1));
    } while (dwarf_siblingof(&child, &child) == 0);
    return SJ_OK;
}

/* Stores the skeleton of a unit whose .dwo file is missing. */
static sj_status add_missing(sj_function_types *types, Dwarf_CU *unit)
{
    SJ_TRY(sj_array_reserve(&types->missing, &types->missing_capacity, types->missing_count, 1,
                            sizeof(*types->missing)));
    types->missing[types->missing_count++] = sj_split_skeleton_of(unit);
    return SJ_OK;
}

/* Adds the functions of all units, including those in .dwo files that libdw found. */
static sj_status walk_units(sj_function_types *types)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Half version = 0;
    uint8_t type = 0;
    Dwarf_Die die;
    Dwarf_Die split;
    while (dwarf_get_units(types->dwarf, unit, &unit, &version, &type, &die, &split) == 0) {
        /* The functions of a skeleton are in its .dwo file, if that exists. */
        const bool is_split = type == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid;
        if (type == DW_UT_skeleton && !is_split) {
            SJ_TRY(add_missing(types, unit));
        }
        SJ_TRY(add_functions(types, is_split ? &split : &die, 0));
    }
    return SJ_OK;
}

/* Stores `state` if it is worse than the current state. */
static void raise_split_state(sj_function_types *types, sj_split_state state)
{
    types->split = state > types->split ? state : types->split;
}

/* Removes from the missing units those that the package lacks. Returns false, and removes none, if
 * the package lacks all of them. */
static bool keep_packaged(sj_function_types *types)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < types->missing_count; i++) {
        if (sj_split_package_has(types->package, types->missing[i].id)) {
            types->missing[kept_count++] = types->missing[i];
        }
    }
    if (kept_count != types->missing_count) {
        raise_split_state(types, SJ_SPLIT_OTHER);
    }
    types->missing_count = kept_count != 0 ? kept_count : types->missing_count;
    return kept_count != 0;
}

/* Adds the functions of the missing units from the package. Continues after a unit that cannot be
 * read. */
static sj_status walk_packaged(sj_function_types *types)
{
    Dwarf_Die unit;
    sj_status status = sj_split_dwarf_new(types->package, types->elf, types->missing,
                                          types->missing_count, &types->packaged);
    while (status != SJ_ECLOSED && types->packaged != NULL) {
        status = sj_split_dwarf_next(types->packaged, &unit);
        if (status == SJ_OK) {
            SJ_TRY(add_functions(types, &unit, 0));
        } else if (status == SJ_ENOMEM) {
            return status;
        } else if (status != SJ_ECLOSED) {
            raise_split_state(types, status == SJ_ELIMIT ? SJ_SPLIT_TOO_LARGE : SJ_SPLIT_DAMAGED);
        }
    }
    if (types->packaged == NULL) {
        raise_split_state(types, SJ_SPLIT_DAMAGED);
    }
    return status == SJ_ENOMEM ? status : SJ_OK;
}

/* Reads the units whose .dwo files are missing from the package PATH.dwp. Closes a package that has
 * none of these units. */
static sj_status read_package(sj_function_types *types, const char *path)
{
    char package[PATH_MAX];
    const int path_length = snprintf(package, sizeof(package), "%s.dwp", path);
    const sj_status status = path_length >= 0 && (size_t)path_length < sizeof(package)
                                 ? sj_split_package_open(package, &types->package)
                                 : SJ_ENOTFOUND;
    if (status == SJ_OK) {
        if (keep_packaged(types)) {
            return walk_packaged(types);
        }
        sj_split_package_close(types->package);
        types->package = NULL;
        return SJ_OK;
    }
    if (status != SJ_ENOMEM && status != SJ_ENOTFOUND) {
        raise_split_state(types, status == SJ_ELIMIT ? SJ_SPLIT_TOO_LARGE : SJ_SPLIT_DAMAGED);
    }
    return status == SJ_ENOMEM ? status : SJ_OK;
}

/* Reads the units whose .dwo files are missing from the package beside the module, or else from
 * that beside the debug file. */
static sj_status read_missing(sj_function_types *types, const char *path, const char *debug_path)
{
    if (types->missing_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(read_package(types, path));
    if (types->package == NULL && debug_path != NULL) {
        /* The state of the module's package is used only if the other package lacks the units,
         * too. */
        const sj_split_state own = types->split;
        types->split = SJ_SPLIT_COMPLETE;
        SJ_TRY(read_package(types, debug_path));
        raise_split_state(types, types->package == NULL ? own : SJ_SPLIT_COMPLETE);
    }
    if (types->package == NULL) {
        raise_split_state(types, SJ_SPLIT_MISSING);
    }
    return SJ_OK;
}

static sj_status add_globals(sj_function_types *types, Elf_Data *data, const GElf_Shdr *header)
{
    const uint64_t count = header->sh_size / header->sh_entsize;
    for (uint64_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Sym symbol;
        if (gelf_getsym(data, (int)i, &symbol) == NULL ||
            GELF_ST_TYPE(symbol.st_info) != STT_FUNC || GELF_ST_BIND(symbol.st_info) == STB_LOCAL ||
            symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        SJ_TRY(sj_array_reserve(&types->globals, &types->global_capacity, types->global_count, 1,
                                sizeof(*types->globals)));
        types->globals[types->global_count++] = symbol.st_value;
    }
    return SJ_OK;
}

/* Collects the addresses of functions whose symbols are not local. */
static sj_status read_globals(sj_function_types *types)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(types->elf, section)) != NULL) {
        GElf_Shdr header;
        Elf_Data *data;
        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            header.sh_entsize != 0 && (data = elf_getdata(section, NULL)) != NULL) {
            SJ_TRY(add_globals(types, data, &header));
        }
    }
    return SJ_OK;
}

static int compare_entries(const void *left, const void *right)
{
    const typed_entry *a = left;
    const typed_entry *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int compare_addresses(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void close_file(sj_function_types *types)
{
    sj_split_dwarf_free(types->packaged);
    sj_split_package_close(types->package);
    types->packaged = NULL;
    types->package = NULL;
    if (types->dwarf != NULL) {
        dwarf_end(types->dwarf);
    }
    if (types->elf != NULL) {
        elf_end(types->elf);
    }
    if (types->descriptor >= 0) {
        close(types->descriptor);
    }
    types->dwarf = NULL;
    types->elf = NULL;
    types->descriptor = -1;
}

/* Opens a file and its DWARF. Returns false, with nothing open, if the file has no DWARF. */
static bool open_file(sj_function_types *types, const char *path)
{
    GElf_Ehdr header;
    elf_version(EV_CURRENT);
    types->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (types->descriptor >= 0) {
        types->elf = elf_begin(types->descriptor, ELF_C_READ_MMAP, NULL);
    }
    const sj_elf_machine *machine = types->elf != NULL && gelf_getehdr(types->elf, &header) != NULL
                                        ? sj_elf_machine_of(header.e_machine)
                                        : NULL;
    if (machine != NULL) {
        types->is_aapcs = !machine->passes_result_address;
        types->dwarf = dwarf_begin_elf(types->elf, DWARF_C_READ, NULL);
    }
    if (types->dwarf == NULL) {
        close_file(types);
        return false;
    }
    return true;
}

/* Writes to `split` the path of the separate debug file that contains a module's DWARF. Returns
 * false if there is none. */
static bool find_debug_file(const char *path, char split[PATH_MAX])
{
    sj_elf elf;
    sj_elf debug;
    if (sj_elf_open(path, &elf, NULL) != SJ_OK) {
        return false;
    }
    const bool is_found =
        sj_debug_file_find(&elf, path, "/usr/lib/debug", &debug, split, PATH_MAX) == SJ_OK;
    if (is_found) {
        sj_elf_close(&debug);
    }
    sj_elf_close(&elf);
    return is_found;
}

static sj_status read_types(sj_function_types *types, const char *path, const char *debug_path)
{
    SJ_TRY(walk_units(types));
    SJ_TRY(read_missing(types, path, debug_path));
    SJ_TRY(read_globals(types));
    if (types->count != 0) {
        qsort(types->entries, types->count, sizeof(*types->entries), compare_entries);
    }
    if (types->global_count != 0) {
        qsort(types->globals, types->global_count, sizeof(*types->globals), compare_addresses);
    }
    return SJ_OK;
}

sj_status sj_function_types_new(const char *path, sj_function_types **types)
{
    char split[PATH_MAX];
    sj_function_types *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    created->descriptor = -1;
    const bool is_own = open_file(created, path);
    if (is_own || (find_debug_file(path, split) && open_file(created, split))) {
        const sj_status status = read_types(created, path, is_own ? NULL : split);
        if (status != SJ_OK) {
            sj_function_types_free(created);
            return status;
        }
    }
    *types = created;
    return SJ_OK;
}

void sj_function_types_free(sj_function_types *types)
{
    if (types == NULL) {
        return;
    }
    close_file(types);
    free(types->missing);
    free(types->entries);
    free(types->globals);
    free(types);
}

sj_split_state sj_function_types_split(const sj_function_types *types)
{
    return types->split;
}

/* True if the symbol names a copy of a function whose parameters the compiler may have changed. */
static bool is_clone(const char *symbol)
{
    return strstr(symbol, ".constprop.") != NULL || strstr(symbol, ".isra.") != NULL ||
           strstr(symbol, ".part.") != NULL;
}

/* Finds the parameter of this function whose origin is `abstract`. Returns false if there is
 * none. */
static bool find_concrete(const function_reader *reader, Dwarf_Die *abstract, Dwarf_Die *found)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    if (dwarf_child(reader->die, found) != 0) {
        return false;
    }
    do {
        if (dwarf_tag(found) == DW_TAG_formal_parameter &&
            dwarf_attr(found, DW_AT_abstract_origin, &attribute) != NULL &&
            dwarf_formref_die(&attribute, &origin) != NULL && origin.addr == abstract->addr) {
            return true;
        }
    } while (dwarf_siblingof(found, found) == 0);
    return false;
}

/* Reads the type of a parameter, and the places that DWARF and the calling convention give. */
static void read_parameter(function_reader *reader, Dwarf_Die *die)
{
    Dwarf_Die concrete = *die;
    parameter *read = &reader->parameters[reader->count++];
    const bool is_found = !reader->has_origin || find_concrete(reader, die, &concrete);
    sj_type_layout layout = {.passing = SJ_PASSED_UNKNOWN};
    *read = (parameter){.die = *die};
    read->has_type = sj_type_of(die, &read->type);
    if (is_found) {
        read->entry =
            sj_parameter_entry(&concrete, reader->entry, reader->is_aapcs, &read->location);
    }
    if (read->has_type) {
        layout = sj_type_layout_of(&read->type, reader->language);
    }
    /* Versions of clang differ in how they pass 128 bits if only one register is left. */
    const bool is_wide = !layout.is_aggregate && layout.words[1] == SJ_WORD_WHOLE;
    if ((reader->language == DW_LANG_Rust && layout.is_aggregate) || (reader->is_llvm && is_wide)) {
        sj_register_use_whole(&reader->use, &layout);
    }
    read->convention = sj_parameter_place_next(&reader->use, &layout);
    read->location.is_address = layout.passing == SJ_PASSED_ADDRESS;
    read->location.extended_bytes = sj_extended_bytes(&layout, reader->is_aapcs);
}

static void read_parameters(function_reader *reader)
{
    Dwarf_Die child;
    if (dwarf_child(reader->has_origin ? &reader->origin : reader->die, &child) != 0) {
        return;
    }
    do {
        if (dwarf_tag(&child) == DW_TAG_formal_parameter && reader->count < MOST_PARAMETERS) {
            read_parameter(reader, &child);
        }
    } while (dwarf_siblingof(&child, &child) == 0);
}

/* Clears is_by_convention if a DWARF location contradicts the calling convention. Also clears it if
 * only one unit can call the function and a parameter does not have a location. Sets is_optimized
 * if a parameter is not in memory. */
static void check_convention(function_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        const parameter *read = &reader->parameters[i];
        if (read->entry != SJ_ENTRY_MEMORY) {
            reader->is_optimized = true;
        }
        if (read->entry == SJ_ENTRY_REGISTERS && read->convention.is_known &&
            (read->convention.is_on_stack ||
             read->location.words[0] != read->convention.words[0])) {
            reader->is_by_convention = false;
        }
        if (read->entry == SJ_ENTRY_REMOVED && !reader->is_global) {
            reader->is_by_convention = false;
        }
    }
}

/* True if callers pass all arguments of the source, in the places of the calling convention. If
 * only one unit can call a function, LLVM may omit arguments, or one of an argument's two words.
 * DWARF does not show this. */
static bool has_all_arguments(const function_reader *reader)
{
    return reader->is_by_convention &&
           (!reader->is_llvm || reader->is_global || !reader->is_optimized);
}

/* Returns where a parameter is at the function's entry. */
static sj_parameter_place place_of(const function_reader *reader, const parameter *read)
{
    static const sj_parameter_place unknown = {0};
    switch (read->entry) {
    /* Only the convention shows which member is in which register. */
    case SJ_ENTRY_REGISTERS:
        return read->convention.members != 0 && read->location.words[0] == read->convention.words[0]
                   ? read->convention
                   : read->location;
    case SJ_ENTRY_MEMORY:
        return has_all_arguments(reader) ? read->convention : unknown;
    case SJ_ENTRY_LATER: /* The function uses the parameter, so callers pass it. */
        return reader->is_by_convention && reader->is_global ? read->convention : unknown;
    default:
        return unknown;
    }
}

/* True if DW_AT_frame_base indicates optimized code: it is not the frame pointer's register. gcc
 * always writes DW_OP_call_frame_cfa, so that value does not count. */
static bool has_optimized_frame(Dwarf_Die *die, bool is_aapcs)
{
    enum { FRAME_POINTER_SYSTEM_V = 6, FRAME_POINTER_AAPCS = 29 };
    Dwarf_Attribute attribute;
    Dwarf_Op *operations = NULL;
    size_t count = 0;
    if (dwarf_attr(die, DW_AT_frame_base, &attribute) == NULL ||
        dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1) {
        return true;
    }
    const unsigned pointer = is_aapcs ? FRAME_POINTER_AAPCS : FRAME_POINTER_SYSTEM_V;
    return operations[0].atom != DW_OP_call_frame_cfa && operations[0].atom != DW_OP_reg0 + pointer;
}

static bool is_llvm(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    const char *producer = dwarf_attr_integrate(unit, DW_AT_producer, &attribute) != NULL
                               ? dwarf_formstring(&attribute)
                               : NULL;
    return producer == NULL || strstr(producer, "GNU ") == NULL;
}

/* Returns the layout of the result. If System V passes the address of a result in memory, counts
 * its register as used. */
static sj_type_layout begin_result(function_reader *reader, Dwarf_Die *type, bool has_type)
{
    const sj_type_layout layout = has_type ? sj_type_layout_of(type, reader->language)
                                           : (sj_type_layout){.passing = SJ_PASSED_NOWHERE};
    reader->use.is_unknown = layout.passing == SJ_PASSED_UNKNOWN;
    reader->use.whole = !reader->is_aapcs && sj_result_is_in_memory(&layout, false) ? 1 : 0;
    return layout;
}

/* Returns the place of the result at the exit. */
static sj_parameter_place result_place(const function_reader *reader, const sj_type_layout *layout)
{
    sj_parameter_place place = {.is_known = has_all_arguments(reader) &&
                                            layout->passing != SJ_PASSED_UNKNOWN};
    if (!place.is_known) {
        return place;
    }
    /* A function of System V returns the address that its caller passed. A function of AAPCS64 does
     * not. */
    place.is_address = sj_result_is_in_memory(layout, reader->is_aapcs);
    place.is_given = place.is_address && reader->is_aapcs;
    place.extended_bytes = sj_extended_bytes(layout, reader->is_aapcs);
    if (layout->passing == SJ_PASSED_WORDS && (!layout->is_aggregate || !reader->is_aapcs)) {
        place.words[0] = sj_value_descriptor(
            SJ_VALUE_RESULT, layout->words[0] == SJ_WORD_REAL ? SJ_VALUE_DOUBLE : SJ_VALUE_LONG);
    } else if (place.is_address) {
        place.words[0] = sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_LONG);
    }
    return place;
}

/* Adds the values of the parameters and of the result to `function`. */
static sj_status describe_function(function_reader *reader, sj_typed_function *function)
{
    Dwarf_Die type;
    const bool has_result = sj_type_of(reader->die, &type);
    const sj_type_layout result = begin_result(reader, &type, has_result);
    read_parameters(reader);
    check_convention(reader);
    for (size_t i = 0; i < reader->count; i++) {
        parameter *read = &reader->parameters[i];
        const char *name = dwarf_diename(&read->die);
        const sj_parameter_place place = place_of(reader, read);
        if (read->has_type) {
            SJ_TRY(sj_typed_values_add(function, name != NULL ? name : "", &read->type, &place,
                                       false));
        }
    }
    const sj_parameter_place place_of_result = result_place(reader, &result);
    const sj_typed_result returned = {
        .place = &place_of_result, .layout = &result, .is_aapcs = reader->is_aapcs};
    if (has_result) {
        SJ_TRY(sj_typed_values_add_result(function, &type, &returned));
    }
    /* Values that parameters point to come last, because the list may be full. */
    for (size_t i = 0; i < reader->count; i++) {
        parameter *read = &reader->parameters[i];
        const char *name = dwarf_diename(&read->die);
        const sj_parameter_place place = place_of(reader, read);
        if (read->has_type) {
            SJ_TRY(sj_typed_values_add_behind(function, name != NULL ? name : "", &read->type,
                                              &place));
        }
    }
    return has_result && !place_of_result.is_address
               ? sj_typed_values_add_behind(function, SJ_TYPED_RESULT, &type, &place_of_result)
               : SJ_OK;
}

static void begin_reader(function_reader *reader, const sj_function_types *types,
                         typed_entry *entry, const char *symbol)
{
    Dwarf_Attribute attribute;
    Dwarf_Die unit;
    reader->die = &entry->die;
    reader->entry = entry->address;
    reader->is_aapcs = reader->use.is_aapcs = types->is_aapcs;
    reader->has_origin = dwarf_attr(&entry->die, DW_AT_abstract_origin, &attribute) != NULL &&
                         dwarf_formref_die(&attribute, &reader->origin) != NULL;
    if (dwarf_diecu(&entry->die, &unit, NULL, NULL) != NULL) {
        reader->language = dwarf_srclang(&unit);
        reader->is_llvm = is_llvm(&unit);
    }
    reader->is_global =
        types->global_count != 0 && bsearch(&entry->address, types->globals, types->global_count,
                                            sizeof(*types->globals), compare_addresses) != NULL;
    reader->is_by_convention =
        !is_clone(symbol) &&
        sj_type_number(&entry->die, DW_AT_calling_convention, DW_CC_normal) == DW_CC_normal;
    reader->is_optimized = has_optimized_frame(&entry->die, types->is_aapcs);
}

/* Returns a function's name in the symbol table, or its name in the source, or "". */
static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL
                           ? dwarf_formstring(&attribute)
                           : dwarf_diename(die);
    return name != NULL ? name : "";
}

/* Returns the function at `offset`, or NULL. If the linker has folded several functions to one
 * address, returns the function whose linkage name is `symbol`. */
static typed_entry *find_entry(const sj_function_types *types, uint64_t offset, const char *symbol)
{
    const size_t low = SJ_BISECT(0, types->count, i, types->entries[i].address < offset);
    size_t end = low;
    while (end < types->count && types->entries[end].address == offset) {
        end++;
    }
    for (size_t i = low; end - low > 1 && i < end; i++) {
        if (strcmp(linkage_name(&types->entries[i].die), symbol) == 0) {
            return &types->entries[i];
        }
    }
    return end - low == 1 ? &types->entries[low] : NULL;
}

sj_status sj_function_types_find(sj_function_types *types, uint64_t offset, const char *symbol,
                                 sj_typed_function **function)
{
    typed_entry *entry = find_entry(types, offset, symbol);
    if (entry == NULL) {
        return SJ_ENOTFOUND;
    }
    function_reader *reader = calloc(1, sizeof(*reader));
    sj_typed_function *created = calloc(1, sizeof(*created));
    sj_status status = SJ_ENOMEM;
    if (reader != NULL && created != NULL) {
        begin_reader(reader, types, entry, symbol);
        status = describe_function(reader, created);
        sj_typed_function_fit(created);
    }
    free(reader);
    if (status != SJ_OK) {
        sj_typed_function_free(created);
        return status;
    }
    *function = created;
    return SJ_OK;
}
