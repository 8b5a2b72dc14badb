/* Design notes
 *
 * GCC's Objective-C ABI (versions 8 to 10; also clang -fobjc-runtime=gcc) has a structure "module"
 * in writable data for each compiled source. It contains the version, its own size, the name, and a
 * pointer to a table of classes and categories with their method lists. Only the code of a
 * constructor refers to it, so it is found by its content: two fixed numbers and two pointers. All
 * reads are bounds-checked. The planner ignores methods whose address is not code.
 *
 * The ABI of libobjc2 (clang -fobjc-runtime=gnustep-2.0) has sections for classes and categories.
 * Their structures begin like GCC's. A method list contains the size of its methods. A method
 * begins with its code. A selector is a structure that begins with its name. The superclass is a
 * pointer to a class, which may be in another module.
 *
 * The implementation (IMP) of a method is an ordinary function, which the planner patches. So all
 * calls are recorded: messages, super, stored IMPs, NSInvocation, forwarding. */
#include "agent/objfile/elf_machine.h"
#include "agent/runtimes/objc/encoding.h"
#include "agent/runtimes/objc/image.h"
#include "agent/runtimes/objc/objc.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
    WORD = 8,
    MODULE_BYTES = 32,
    ABI_LOWEST = 8,
    ABI_HIGHEST = 10,
    METHOD_BYTES = 24,
    METHOD_MAX_BYTES = 256,
    METHODS_MAX = 65536,
    /* Maximum number of entries read in one file: damaged tables may refer to one list many times.
     */
    ENTRIES_MAX = 1 << 20,
    LISTS_MAX = 16,
    IDENTIFIER_MAX = 1024,
    NAME_BYTES = 4 * IDENTIFIER_MAX
};

/* Offsets of members. */
enum {
    MODULE_NAME = 16,
    MODULE_TABLE = 24,
    TABLE_COUNTS = 16,
    TABLE_DEFINITIONS = 24,
    CLASS_META = 0,
    CLASS_SUPER = 8, /* In GCC's files, a pointer to the name of the superclass. */
    CLASS_NAME = 16,
    CLASS_METHODS = 56,
    CATEGORY_NAME = 0,
    CATEGORY_CLASS = 8,
    CATEGORY_INSTANCE_METHODS = 16,
    CATEGORY_CLASS_METHODS = 24,
    LIST_NEXT = 0,
    LIST_COUNT = 8,
    LIST_METHOD_BYTES = 16, /* Only libobjc2. */
    CATEGORY_BYTES = 56     /* Only libobjc2. */
};

/* Offsets of the members of a method list and of a method in one ABI. */
typedef struct method_layout {
    uint8_t list_methods;
    uint8_t selector;
    uint8_t types;
    uint8_t code;
    bool is_libobjc2;
} method_layout;

static const method_layout gcc_layout = {.list_methods = 16, .selector = 0, .types = 8, .code = 16};
static const method_layout libobjc2_layout = {
    .list_methods = 24, .code = 0, .selector = 8, .types = 16, .is_libobjc2 = true};

#define CLASS_SYMBOL "._OBJC_CLASS_"

typedef struct metadata_run {
    sj_image image;
    const method_layout *layout;
    sj_runtime_sink sink;             /* NULL if only classes are read. */
    sj_runtime_class_sink class_sink; /* NULL if only functions are read. */
    void *context;
    uint32_t *entries_left; /* See ENTRIES_MAX. */
} metadata_run;

/* The class that owns a list of methods. */
typedef struct method_owner {
    char kind; /* '-' or '+'. */
    const char *class_name;
    const char *category; /* NULL if the list belongs to the class itself. */
} method_owner;

static uint64_t word_at(const metadata_run *run, uint64_t address)
{
    uint64_t word = 0;
    return sj_image_word(&run->image, address, &word) ? word : 0;
}

static const char *text_at(const metadata_run *run, uint64_t field)
{
    return sj_image_text(&run->image, word_at(run, field), IDENTIFIER_MAX);
}

/* Returns the number of the argument that is the receiver, or 0 if not known. */
static uint8_t find_receiver(const metadata_run *run, uint64_t method)
{
    const char *types = text_at(run, method + run->layout->types);
    const sj_elf_machine *machine = sj_elf_machine_of(run->image.elf->machine);
    if (machine == NULL || !machine->passes_result_address) {
        return 1;
    }
    switch (types != NULL ? sj_objc_encoding_result(types) : SJ_OBJC_RESULT_UNKNOWN) {
    case SJ_OBJC_RESULT_REGISTERS:
        return 1;
    case SJ_OBJC_RESULT_MEMORY:
        return 2;
    default:
        return 0;
    }
}

static sj_status add_method(const metadata_run *run, const method_owner *owner, uint64_t method)
{
    char name[NAME_BYTES];
    const uint64_t place = method + run->layout->selector;
    const char *selector = text_at(run, run->layout->is_libobjc2 ? word_at(run, place) : place);
    const uint64_t code = word_at(run, method + run->layout->code);
    if (selector == NULL || code == 0) {
        return SJ_OK;
    }
    const bool in_category = owner->category != NULL;
    snprintf(name, sizeof(name), "%c[%s%s%s%s %s]", owner->kind, owner->class_name,
             in_category ? "(" : "", in_category ? owner->category : "", in_category ? ")" : "",
             selector);
    const sj_runtime_function function = {
        .address = code, .name = name, .receiver = find_receiver(run, method)};
    return run->sink(run->context, &function);
}

static sj_status add_methods(const metadata_run *run, const method_owner *owner, uint64_t list)
{
    for (unsigned lists = 0; list != 0 && lists < LISTS_MAX; lists++) {
        const uint32_t count = (uint32_t)word_at(run, list + LIST_COUNT);
        const uint64_t stated =
            run->layout->is_libobjc2 ? word_at(run, list + LIST_METHOD_BYTES) : METHOD_BYTES;
        const uint64_t bytes = stated >= METHOD_BYTES && stated <= METHOD_MAX_BYTES ? stated : 0;
        const bool is_sane = count <= METHODS_MAX && bytes != 0;
        for (uint32_t i = 0; i < count && is_sane && *run->entries_left > 0; i++) {
            --*run->entries_left;
            SJ_TRY(add_method(run, owner, list + run->layout->list_methods + i * bytes));
        }
        list = word_at(run, list + LIST_NEXT);
    }
    return SJ_OK;
}

/* Returns the name of the class that a class extends, or NULL. */
static const char *find_super(const metadata_run *run, uint64_t class)
{
    if (!run->layout->is_libobjc2) {
        return text_at(run, class + CLASS_SUPER);
    }
    const char *import = sj_image_import(&run->image, class + CLASS_SUPER);
    if (import != NULL) {
        const size_t bytes = sizeof(CLASS_SYMBOL) - 1;
        return strncmp(import, CLASS_SYMBOL, bytes) == 0 ? import + bytes : NULL;
    }
    const uint64_t super = word_at(run, class + CLASS_SUPER);
    return super != 0 ? text_at(run, super + CLASS_NAME) : NULL;
}

static sj_status add_class(const metadata_run *run, uint64_t address)
{
    const uint64_t meta = word_at(run, address + CLASS_META);
    method_owner owner = {.kind = '-', .class_name = text_at(run, address + CLASS_NAME)};
    if (owner.class_name == NULL || meta == 0) {
        return SJ_OK;
    }
    if (run->class_sink != NULL) {
        const sj_runtime_class class = {.address = address,
                                        .meta = meta,
                                        .name = owner.class_name,
                                        .super = find_super(run, address)};
        return run->class_sink(run->context, &class);
    }
    SJ_TRY(add_methods(run, &owner, word_at(run, address + CLASS_METHODS)));
    owner.kind = '+';
    return add_methods(run, &owner, word_at(run, meta + CLASS_METHODS));
}

static sj_status add_category(const metadata_run *run, uint64_t address)
{
    method_owner owner = {.kind = '-',
                          .class_name = text_at(run, address + CATEGORY_CLASS),
                          .category = text_at(run, address + CATEGORY_NAME)};
    if (owner.class_name == NULL || owner.category == NULL) {
        return SJ_OK;
    }
    SJ_TRY(add_methods(run, &owner, word_at(run, address + CATEGORY_INSTANCE_METHODS)));
    owner.kind = '+';
    return add_methods(run, &owner, word_at(run, address + CATEGORY_CLASS_METHODS));
}

static sj_status add_table(const metadata_run *run, uint64_t table)
{
    const uint64_t counts = word_at(run, table + TABLE_COUNTS);
    const uint32_t classes = counts & UINT16_MAX;
    const uint32_t categories = run->class_sink != NULL ? 0 : counts >> 16 & UINT16_MAX;
    for (uint32_t i = 0; i < classes + categories; i++) {
        const uint64_t address = word_at(run, table + TABLE_DEFINITIONS + (uint64_t)i * WORD);
        SJ_TRY(i < classes ? add_class(run, address) : add_category(run, address));
    }
    return SJ_OK;
}

/* Searches a section for structures "module" and reads their tables. */
static sj_status scan_section(const metadata_run *run, const sj_elf_section *section)
{
    const sj_slice bytes = sj_elf_section_bytes(run->image.elf, section);
    const uint64_t skip = -section->address & (WORD - 1);
    for (uint64_t at = skip; at + MODULE_BYTES <= bytes.size; at += WORD) {
        sj_reader reader = sj_reader_of(bytes.data + at, MODULE_BYTES);
        const uint64_t version = sj_read_u64(&reader);
        const uint64_t size = sj_read_u64(&reader);
        const uint64_t address = section->address + at;
        if (version < ABI_LOWEST || version > ABI_HIGHEST || size != MODULE_BYTES ||
            word_at(run, address + MODULE_NAME) == 0) {
            continue;
        }
        const uint64_t table = word_at(run, address + MODULE_TABLE);
        if (table % WORD == 0 && sj_elf_at(run->image.elf, table).size >= TABLE_DEFINITIONS) {
            SJ_TRY(add_table(run, table));
        }
    }
    return SJ_OK;
}

/* True if the file refers to __objc_exec_class, which all code for GCC's runtime calls. */
static bool uses_gcc_runtime(const sj_elf *elf)
{
    static const char entry[] = "__objc_exec_class";
    const sj_elf_section *names = sj_elf_find_section(elf, ".dynstr");
    const sj_slice bytes = sj_elf_section_bytes(elf, names);
    for (size_t at = 0; at + sizeof(entry) <= bytes.size; at++) {
        if (bytes.data[at] == entry[0] && memcmp(bytes.data + at, entry, sizeof(entry)) == 0) {
            return true;
        }
    }
    return false;
}

static sj_status scan_modules(metadata_run *run)
{
    const sj_elf *elf = run->image.elf;
    run->layout = &gcc_layout;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const uint64_t flags = elf->sections[i].flags;
        if (elf->sections[i].type == SHT_PROGBITS && (flags & SHF_ALLOC) != 0 &&
            (flags & SHF_WRITE) != 0) {
            SJ_TRY(scan_section(run, &elf->sections[i]));
        }
    }
    return SJ_OK;
}

/* Returns the size of a section, but at most the size of ENTRIES_MAX entries: a damaged file may
 * claim any size. */
static uint64_t bytes_to_scan(const sj_elf_section *section, uint64_t entry_bytes)
{
    const uint64_t most = ENTRIES_MAX * entry_bytes;
    return section == NULL ? 0 : section->size < most ? section->size : most;
}

/* Reads the sections of libobjc2's ABI: an array of pointers to classes, and an array of
 * categories. */
static sj_status scan_tables(metadata_run *run, const sj_elf_section *classes,
                             const sj_elf_section *categories)
{
    run->layout = &libobjc2_layout;
    const uint64_t class_bytes = bytes_to_scan(classes, WORD);
    for (uint64_t at = 0; at + WORD <= class_bytes; at += WORD) {
        const uint64_t class = word_at(run, classes->address + at);
        if (class != 0 && *run->entries_left > 0) {
            --*run->entries_left;
            SJ_TRY(add_class(run, class));
        }
    }
    const uint64_t category_bytes =
        run->class_sink == NULL ? bytes_to_scan(categories, CATEGORY_BYTES) : 0;
    for (uint64_t at = 0; at + CATEGORY_BYTES <= category_bytes; at += CATEGORY_BYTES) {
        if (*run->entries_left > 0) {
            --*run->entries_left;
            SJ_TRY(add_category(run, categories->address + at));
        }
    }
    return SJ_OK;
}

static sj_status scan(const sj_elf *elf, metadata_run *run)
{
    const sj_elf_section *classes = sj_elf_find_section(elf, "__objc_classes");
    const sj_elf_section *categories = sj_elf_find_section(elf, "__objc_cats");
    const bool is_gcc = uses_gcc_runtime(elf);
    if (!is_gcc && classes == NULL && categories == NULL) {
        return SJ_OK;
    }
    uint32_t entries_left = ENTRIES_MAX;
    run->entries_left = &entries_left;
    sj_status status = sj_image_open(elf, &run->image);
    if (status == SJ_OK && is_gcc) {
        status = scan_modules(run);
    }
    if (status == SJ_OK) {
        status = scan_tables(run, classes, categories);
    }
    sj_image_close(&run->image);
    return status;
}

sj_status sj_objc_find_functions(const sj_elf *elf, sj_runtime_sink sink, void *context)
{
    metadata_run run = {.sink = sink, .context = context};
    return scan(elf, &run);
}

sj_status sj_objc_find_classes(const sj_elf *elf, sj_runtime_class_sink sink, void *context)
{
    metadata_run run = {.class_sink = sink, .context = context};
    return scan(elf, &run);
}
