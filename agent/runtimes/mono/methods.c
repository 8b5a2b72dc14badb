#include "agent/runtimes/mono/methods.h"

#include "agent/runtimes/mono/file.h"
#include "agent/runtimes/mono/key_token.h"
#include "agent/runtimes/mono/type_names.h"

#include <stdlib.h>

enum { METHOD_CODE = 0, METHOD_NAME = 3, METHOD_SIGNATURE = 4, TYPE_METHODS = 5 };

/* Returns the type that defines a method: the last type whose method list begins at or before the
 * method. `owner` is the type of an earlier method, or 0. */
static uint32_t next_owner(const sj_assembly *assembly, uint32_t owner, uint32_t method)
{
    const uint32_t types = assembly->tables[SJ_TABLE_TYPE_DEF].rows;
    while (owner < types &&
           sj_assembly_cell(assembly, SJ_TABLE_TYPE_DEF, owner + 1, TYPE_METHODS) <= method) {
        owner++;
    }
    return owner;
}

static void write_name(const sj_type_names *names, uint32_t owner, uint32_t method,
                       sj_name_text *text)
{
    const sj_assembly *assembly = names->assembly;
    const char *name = sj_assembly_string(
        assembly, sj_assembly_cell(assembly, SJ_TABLE_METHOD_DEF, method, METHOD_NAME));
    const sj_slice signature = sj_assembly_blob(
        assembly, sj_assembly_cell(assembly, SJ_TABLE_METHOD_DEF, method, METHOD_SIGNATURE));
    const sj_type_scope scope = {.type = owner, .method = method};
    sj_type_names_add_definition(names, owner, text);
    sj_name_add(text, ":");
    sj_name_add(text, name[0] != '\0' ? name : "?");
    sj_name_add(text, "(");
    sj_type_names_add_parameters(names, &scope, signature, text);
    sj_name_add(text, ")");
}

sj_status sj_mono_each_method(const sj_assembly *assembly, sj_container_sink sink, void *context)
{
    sj_type_names names;
    uint32_t owner = 0;
    sj_status status = sj_type_names_open(assembly, &names);
    const uint32_t count = assembly->tables[SJ_TABLE_METHOD_DEF].rows;
    for (uint32_t method = 1; method <= count && status == SJ_OK; method++) {
        sj_name_text text = {.capacity = SJ_MONO_NAME_BYTES};
        owner = next_owner(assembly, owner, method);
        write_name(&names, owner, method, &text);
        const bool has_code =
            sj_assembly_cell(assembly, SJ_TABLE_METHOD_DEF, method, METHOD_CODE) != 0;
        status = sink(context, method, sj_name_finish(&text), has_code);
    }
    sj_type_names_close(&names);
    return status;
}

/* The file of an assembly, in memory. */
typedef struct loaded_assembly {
    uint8_t *bytes;
    sj_assembly assembly;
} loaded_assembly;

/* Reads and opens an assembly. Returns SJ_EVERSION if `id` is not empty and differs from its module
 * id. The caller frees loaded->bytes, even after an error. */
static sj_status load_assembly(const char *path, sj_slice id, loaded_assembly *loaded)
{
    size_t size = 0;
    *loaded = (loaded_assembly){0};
    SJ_TRY(sj_mono_load_file(path, &loaded->bytes, &size));
    SJ_TRY(sj_assembly_open((sj_slice){.data = loaded->bytes, .size = size}, &loaded->assembly));
    const uint8_t *found = sj_assembly_id(&loaded->assembly);
    const bool is_same = id.size == 0 || (found != NULL && id.size == SJ_ASSEMBLY_ID_BYTES &&
                                          memcmp(found, id.data, id.size) == 0);
    return is_same ? SJ_OK : SJ_EVERSION;
}

sj_status sj_mono_read_file(const char *path, sj_slice id, sj_container_sink sink, void *context)
{
    loaded_assembly loaded;
    sj_status status = load_assembly(path, id, &loaded);
    if (status == SJ_OK) {
        status = sj_mono_each_method(&loaded.assembly, sink, context);
    }
    free(loaded.bytes);
    return status;
}

static sj_status each_class(const sj_assembly *assembly, sj_container_class_sink sink,
                            void *context)
{
    sj_type_names names;
    sj_status status = sj_type_names_open(assembly, &names);
    const uint32_t count = assembly->tables[SJ_TABLE_TYPE_DEF].rows;
    for (uint32_t type = 1; type <= count && status == SJ_OK; type++) {
        sj_name_text name = {.capacity = SJ_MONO_NAME_BYTES};
        sj_name_text super = {.capacity = SJ_MONO_NAME_BYTES};
        sj_type_names_add_definition(&names, type, &name);
        sj_type_names_add_super(&names, type, &super);
        const char *text = sj_name_finish(&super);
        if (name.used != 0) {
            status = sink(context, sj_name_finish(&name), text[0] != '\0' ? text : NULL);
        }
    }
    sj_type_names_close(&names);
    return status;
}

sj_status sj_mono_read_classes(const char *path, sj_slice id, sj_container_class_sink sink,
                               void *context)
{
    loaded_assembly loaded;
    sj_status status = load_assembly(path, id, &loaded);
    if (status == SJ_OK) {
        status = each_class(&loaded.assembly, sink, context);
    }
    free(loaded.bytes);
    return status;
}

bool sj_mono_is_framework(const char *path, sj_slice id)
{
    loaded_assembly loaded;
    const bool is_framework =
        load_assembly(path, id, &loaded) == SJ_OK && sj_assembly_is_framework(&loaded.assembly);
    free(loaded.bytes);
    return is_framework;
}
