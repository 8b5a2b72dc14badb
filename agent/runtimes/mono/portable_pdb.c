/* Design notes
 *
 * A portable PDB is metadata like an assembly's, but with other tables (Portable PDB v1.0). The
 * tables Document and MethodDebugInformation come first, so the layouts of the other tables are not
 * needed. */
#include "agent/runtimes/mono/source_lines.h"

#include "agent/runtimes/mono/assembly.h"

#include <stdlib.h>

enum {
    TABLE_DOCUMENT = 0x30,
    TABLE_METHOD = 0x31,
    TABLES_END = 64,
    HIDDEN_LINE = 0xfeefee,
    /* Limit of sequence points and parts of names: in a damaged file, many methods may share them.
     */
    STEPS_MAX = 1 << 26,
};

typedef struct pdb_file {
    sj_metadata metadata;
    uint32_t document_count, method_count;
    uint32_t document_bytes, method_bytes;                 /* Size of a row of each table. */
    uint32_t blob_bytes, guid_bytes, document_index_bytes; /* Sizes of indices: 2 or 4. */
    const uint8_t *documents;
    const uint8_t *methods;
    uint32_t steps; /* See STEPS_MAX. */
} pdb_file;

static sj_status check_id(const sj_metadata *metadata, sj_slice id)
{
    sj_reader reader = sj_reader_of(metadata->pdb.data, metadata->pdb.size);
    const uint8_t *found = sj_read_bytes(&reader, SJ_PORTABLE_PDB_ID_BYTES);
    if (found == NULL) {
        return SJ_ECORRUPT;
    }
    return id.size == SJ_PORTABLE_PDB_ID_BYTES && memcmp(found, id.data, id.size) == 0
               ? SJ_OK
               : SJ_EVERSION;
}

static uint32_t read_index(sj_reader *reader, uint32_t bytes)
{
    return bytes == 2 ? sj_read_u16(reader) : sj_read_u32(reader);
}

static sj_status find_tables(pdb_file *pdb)
{
    uint32_t rows[TABLES_END] = {0};
    sj_reader reader = sj_reader_of(pdb->metadata.tables.data, pdb->metadata.tables.size);
    (void)sj_read_bytes(&reader, 6);
    const uint8_t heaps = sj_read_u8(&reader);
    (void)sj_read_u8(&reader);
    const uint64_t present = sj_read_u64(&reader);
    (void)sj_read_u64(&reader);
    for (uint32_t i = 0; i < TABLES_END; i++) {
        rows[i] = (present >> i & 1) != 0 ? sj_read_u32(&reader) : 0;
    }
    if ((present & ((UINT64_C(1) << TABLE_DOCUMENT) - 1)) != 0) {
        return SJ_ECORRUPT; /* The file has tables of an assembly. */
    }
    pdb->guid_bytes = (heaps & 2) != 0 ? 4 : 2;
    pdb->blob_bytes = (heaps & 4) != 0 ? 4 : 2;
    pdb->document_count = rows[TABLE_DOCUMENT];
    pdb->method_count = rows[TABLE_METHOD];
    pdb->document_index_bytes = pdb->document_count < 0x10000 ? 2 : 4;
    pdb->document_bytes = 2 * (pdb->blob_bytes + pdb->guid_bytes);
    pdb->method_bytes = pdb->document_index_bytes + pdb->blob_bytes;
    pdb->documents = sj_read_bytes(&reader, (size_t)pdb->document_count * pdb->document_bytes);
    pdb->methods = sj_read_bytes(&reader, (size_t)pdb->method_count * pdb->method_bytes);
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

/* Writes the name of a document. In the file, a name is a separator and the indices of its parts.
 * Writes
 * "" if the name is damaged or too long, or if the document does not exist. */
static void read_document(pdb_file *pdb, uint32_t number, char name[SJ_SOURCE_FILE_BYTES])
{
    size_t used = 0;
    name[0] = '\0';
    if (number == 0 || number > pdb->document_count) {
        return;
    }
    sj_reader row = sj_reader_of(pdb->documents + (size_t)(number - 1) * pdb->document_bytes,
                                 pdb->document_bytes);
    const sj_slice blob = sj_metadata_blob(&pdb->metadata, read_index(&row, pdb->blob_bytes));
    sj_reader parts = sj_reader_of(blob.data, blob.size);
    const char separator = (char)sj_read_u8(&parts);
    for (bool is_first = true; !parts.bad && sj_reader_left(&parts) != 0; is_first = false) {
        pdb->steps++;
        const sj_slice part = sj_metadata_blob(&pdb->metadata, sj_assembly_compressed(&parts));
        const size_t before = !is_first && separator != '\0' ? 1 : 0;
        if (part.size + before >= SJ_SOURCE_FILE_BYTES - used ||
            (part.size != 0 && memchr(part.data, '\0', part.size) != NULL)) {
            used = 0;
            break;
        }
        if (before != 0) {
            name[used++] = separator;
        }
        if (part.size != 0) {
            memcpy(name + used, part.data, part.size);
            used += part.size;
        }
    }
    name[used] = '\0';
}

/* Reads a compressed signed number (ECMA-335, II.23.2): the lowest bit is the sign. */
static int32_t read_signed(sj_reader *reader)
{
    const uint8_t first = reader->at != reader->end ? reader->at[0] : 0;
    const uint32_t raw = sj_assembly_compressed(reader);
    const unsigned bits = first < 0x80 ? 6 : first < 0xc0 ? 13 : 28;
    return (int32_t)((raw & 1) != 0 ? raw >> 1 | ~UINT32_C(0) << bits : raw >> 1);
}

/* State of reading the sequence points of one method. */
typedef struct point_state {
    sj_container_line at; /* Passed to the sink. */
    uint32_t offset;
    uint32_t line; /* Line of the latest point that is not hidden, or 0. */
    bool is_first;
} point_state;

/* Reads the lines and columns of one point. Returns true if it has a line, false if it is hidden.
 */
static bool read_point(sj_reader *points, point_state *state)
{
    const uint32_t lines = sj_assembly_compressed(points);
    const int32_t columns =
        lines == 0 ? (int32_t)sj_assembly_compressed(points) : read_signed(points);
    if (lines == 0 && columns == 0) {
        return false; /* A hidden point. */
    }
    if (state->line == 0) {
        state->line = sj_assembly_compressed(points);
        (void)sj_assembly_compressed(points); /* Column. */
    } else {
        state->line += (uint32_t)read_signed(points);
        (void)read_signed(points);
    }
    return state->line != 0 && state->line < HIDDEN_LINE;
}

static sj_status read_method(pdb_file *pdb, uint32_t document, sj_slice blob, point_state *state,
                             char *name, sj_container_line_sink sink, void *context)
{
    sj_reader points = sj_reader_of(blob.data, blob.size);
    sj_status status = SJ_OK;
    (void)sj_assembly_compressed(&points); /* Signature of the local variables. */
    read_document(pdb, document != 0 ? document : sj_assembly_compressed(&points), name);
    while (status == SJ_OK && !points.bad && sj_reader_left(&points) != 0 &&
           pdb->steps++ < STEPS_MAX) {
        const uint32_t more = sj_assembly_compressed(&points);
        if (more == 0 && !state->is_first) {
            read_document(pdb, sj_assembly_compressed(&points), name);
            continue;
        }
        state->is_first = false;
        state->offset += more;
        if (read_point(&points, state) && !points.bad && name[0] != '\0') {
            state->at.offset = state->offset;
            state->at.line = state->line;
            status = sink(context, &state->at);
        }
    }
    return status;
}

sj_status sj_portable_pdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink,
                               void *context)
{
    pdb_file pdb = {0};
    SJ_TRY(sj_metadata_open(file, &pdb.metadata));
    SJ_TRY(check_id(&pdb.metadata, id));
    SJ_TRY(find_tables(&pdb));
    char *name = malloc(SJ_SOURCE_FILE_BYTES);
    sj_status status = name != NULL ? SJ_OK : SJ_ENOMEM;
    for (uint32_t method = 1;
         method <= pdb.method_count && status == SJ_OK && pdb.steps < STEPS_MAX; method++) {
        sj_reader row =
            sj_reader_of(pdb.methods + (size_t)(method - 1) * pdb.method_bytes, pdb.method_bytes);
        const uint32_t document = read_index(&row, pdb.document_index_bytes);
        const sj_slice blob = sj_metadata_blob(&pdb.metadata, read_index(&row, pdb.blob_bytes));
        point_state state = {.at = {.token = method, .file = name}, .is_first = true};
        if (blob.size != 0) {
            status = read_method(&pdb, document, blob, &state, name, sink, context);
        }
    }
    free(name);
    return status;
}
