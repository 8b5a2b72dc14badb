#include "agent/runtimes/mono/source_lines.h"

#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/mono/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads a symbol file of one format. */
typedef sj_status (*read_symbols)(sj_slice file, sj_slice id, sj_container_line_sink sink,
                                  void *context);

static sj_status read_file(read_symbols read, const char *path, sj_slice id,
                           sj_container_line_sink sink, void *context)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    sj_status status = sj_mono_load_file(path, &bytes, &size);
    if (status == SJ_OK) {
        status = read((sj_slice){.data = bytes, .size = size}, id, sink, context);
    }
    free(bytes);
    return status;
}

/* Reads NAME.exe.mdb if it has the module's id. */
static sj_status read_mdb(const char *path, sj_slice id, sj_container_line_sink sink, void *context)
{
    char symbols[PATH_MAX];
    if (snprintf(symbols, sizeof(symbols), "%s.mdb", path) >= (int)sizeof(symbols)) {
        return SJ_ENOTFOUND;
    }
    return read_file(sj_mdb_read, symbols, id, sink, context);
}

/* Reads the portable PDB inside the assembly, else NAME.pdb. Its id must equal the id in the
 * assembly. */
static sj_status read_portable_pdb(const char *path, sj_container_line_sink sink, void *context)
{
    char symbols[PATH_MAX];
    uint8_t id_bytes[SJ_PORTABLE_PDB_ID_BYTES];
    uint8_t *bytes = NULL;
    size_t size = 0;
    const sj_slice id = {.data = id_bytes, .size = sizeof(id_bytes)};
    const char *end = strrchr(path, '.');
    const int stem = end != NULL ? (int)(end - path) : (int)strlen(path);
    if (snprintf(symbols, sizeof(symbols), "%.*s.pdb", stem, path) >= (int)sizeof(symbols)) {
        return SJ_ENOTFOUND;
    }
    sj_status status = sj_mono_load_file(path, &bytes, &size);
    const sj_slice file = {.data = bytes, .size = size};
    bool has_id = false;
    if (status == SJ_OK) {
        has_id = sj_assembly_pdb_id(file, id_bytes);
        status = has_id ? sj_embedded_pdb_read(file, id, sink, context) : SJ_ENOTFOUND;
    }
    free(bytes);
    return has_id && status == SJ_ENOTFOUND
               ? read_file(sj_portable_pdb_read, symbols, id, sink, context)
               : status;
}

sj_status sj_mono_read_lines(const char *path, sj_slice id, sj_container_line_sink sink,
                             void *context)
{
    const sj_status status = read_mdb(path, id, sink, context);
    return status == SJ_ENOTFOUND || status == SJ_EVERSION || status == SJ_ECORRUPT
               ? read_portable_pdb(path, sink, context)
               : status;
}
