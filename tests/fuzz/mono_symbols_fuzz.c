/* Reads arbitrary bytes as a symbol file. Lines may be wrong, but memory accesses must be valid.
 * The expected id is taken from the file, so that the rest is read, too. */
#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/mono/source_lines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sj_status check_line(void *context, const sj_container_line *line)
{
    uint32_t *count = context;
    const size_t bytes = strlen(line->file);
    if (line->line == 0 || line->token == 0 || bytes == 0 || bytes >= SJ_SOURCE_FILE_BYTES) {
        abort();
    }
    return ++*count < 100000 ? SJ_OK : SJ_ELIMIT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MDB_ID = 16 };
    const sj_slice file = {.data = data, .size = size};
    sj_metadata metadata;
    uint32_t count = 0;
    if (size >= MDB_ID + SJ_ASSEMBLY_ID_BYTES) {
        const sj_slice id = {.data = data + MDB_ID, .size = SJ_ASSEMBLY_ID_BYTES};
        (void)!sj_mdb_read(file, id, check_line, &count);
    }
    if (sj_metadata_open(file, &metadata) == SJ_OK &&
        metadata.pdb.size >= SJ_PORTABLE_PDB_ID_BYTES) {
        const sj_slice id = {.data = metadata.pdb.data, .size = SJ_PORTABLE_PDB_ID_BYTES};
        (void)!sj_portable_pdb_read(file, id, check_line, &count);
    }
    uint8_t id_bytes[SJ_PORTABLE_PDB_ID_BYTES];
    if (sj_assembly_pdb_id(file, id_bytes)) {
        const sj_slice id = {.data = id_bytes, .size = sizeof(id_bytes)};
        (void)!sj_embedded_pdb_read(file, id, check_line, &count);
    }
    return 0;
}
