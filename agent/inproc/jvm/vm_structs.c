#include "agent/inproc/jvm/vm_structs.h"

#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/module_walk.h"

#include <string.h>

enum { FIELDS_MAX = 100000 };

/* HotSpot's array gHotSpotVMStructs. Each entry describes a field of a structure. */
typedef struct struct_table {
    const uint8_t *entries;
    uint64_t stride; /* Size of an entry. */
    /* Offsets of the members of an entry. */
    uint64_t type_name;
    uint64_t field_name;
    uint64_t is_static;
    uint64_t offset;
} struct_table;

/* Searches the module that defines gHotSpotVMStructs. */
typedef struct module_search {
    sj_dynamic_view view;
    bool is_found;
} module_search;

static const void *find_symbol(const sj_dynamic_view *view, const char *name)
{
    uint32_t index = 0;
    return sj_symbol_next(view, name, sj_symbol_hash(name), &index)
               ? (const void *)(uintptr_t)(view->bias + view->symbols[index].st_value)
               : NULL;
}

static int match_jvm(struct dl_phdr_info *info, size_t size, void *context)
{
    module_search *search = context;
    (void)size;
    search->is_found = sj_dynamic_view_read(info, &search->view) &&
                       find_symbol(&search->view, "gHotSpotVMStructs") != NULL;
    return search->is_found ? 1 : 0;
}

static bool read_word(const sj_dynamic_view *jvm, const char *name, uint64_t *word)
{
    const void *symbol = find_symbol(jvm, name);
    if (symbol != NULL) {
        memcpy(word, symbol, sizeof(*word));
    }
    return symbol != NULL;
}

static bool open_table(const sj_dynamic_view *jvm, struct_table *table)
{
    uint64_t entries = 0;
    const bool is_complete =
        read_word(jvm, "gHotSpotVMStructs", &entries) &&
        read_word(jvm, "gHotSpotVMStructEntryArrayStride", &table->stride) &&
        read_word(jvm, "gHotSpotVMStructEntryTypeNameOffset", &table->type_name) &&
        read_word(jvm, "gHotSpotVMStructEntryFieldNameOffset", &table->field_name) &&
        read_word(jvm, "gHotSpotVMStructEntryIsStaticOffset", &table->is_static) &&
        read_word(jvm, "gHotSpotVMStructEntryOffsetOffset", &table->offset);
    table->entries = (const uint8_t *)(uintptr_t)entries;
    return is_complete && entries != 0 && table->stride != 0;
}

static bool find_field(const struct_table *table, const char *type, const char *field,
                       uint64_t *offset)
{
    const uint8_t *entry = table->entries;
    for (uint32_t i = 0; i < FIELDS_MAX; i++, entry += table->stride) {
        const char *type_name;
        const char *field_name;
        int32_t is_static;
        memcpy(&type_name, entry + table->type_name, sizeof(type_name));
        memcpy(&field_name, entry + table->field_name, sizeof(field_name));
        memcpy(&is_static, entry + table->is_static, sizeof(is_static));
        if (type_name == NULL) {
            return false;
        }
        if (is_static == 0 && field_name != NULL && strcmp(type_name, type) == 0 &&
            strcmp(field_name, field) == 0) {
            memcpy(offset, entry + table->offset, sizeof(*offset));
            return true;
        }
    }
    return false;
}

bool sj_vm_structs_read(sj_vm_offsets *offsets)
{
    struct_table table = {0};
    module_search search = {0};
    (void)sj_module_walk(match_jvm, &search);
    return search.is_found && open_table(&search.view, &table) &&
           find_field(&table, "Method", "_code", &offsets->method_code) &&
           find_field(&table, "nmethod", "_verified_entry_point", &offsets->verified_entry);
}
