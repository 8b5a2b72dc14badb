/* Design notes. The bytes of a row depend on the sizes of other tables and of heaps. The offset of
 * a table depends on all tables before it. So `schema` has the columns of every table (ECMA-335,
 * II.22), although only a few tables are read. */
#include "agent/runtimes/mono/assembly.h"

enum {
    MZ = 0x5a4d,
    PE_OFFSET = 0x3c,
    PE_SIGNATURE = 0x4550,
    PE32_MAGIC = 0x10b,
    PE32_PLUS_MAGIC = 0x20b,
    DEBUG_DIRECTORY = 6,
    CLI_DIRECTORY = 14,
    SECTIONS_MAX = 96,
    METADATA_SIGNATURE = 0x424a5342,
    VERSION_MAX_BYTES = 256,
    STREAMS_MAX = 16
};

/* Kinds of columns: a number of bytes, an index into a heap, or a coded index. Any other value is
 * the number of the table that the column indexes. */
enum {
    TWO = 0x40,
    FOUR = 0x41,
    STRING = 0x42,
    GUID = 0x43,
    BLOB = 0x44,
    CODED = 0x50, /* Plus the number of the coding in `codings`. */
    END = 0xff
};

enum {
    TYPE_DEF_OR_REF = CODED,
    HAS_CONSTANT,
    HAS_CUSTOM_ATTRIBUTE,
    HAS_FIELD_MARSHAL,
    HAS_DECL_SECURITY,
    MEMBER_REF_PARENT,
    HAS_SEMANTICS,
    METHOD_DEF_OR_REF,
    MEMBER_FORWARDED,
    IMPLEMENTATION,
    CUSTOM_ATTRIBUTE_TYPE,
    RESOLUTION_SCOPE,
    TYPE_OR_METHOD_DEF,
    CODED_END
};

enum { CODED_TABLES = 22 };

static const struct {
    uint8_t bits;
    uint8_t count;
    uint8_t tables[CODED_TABLES];
} codings[CODED_END - CODED] = {
    [TYPE_DEF_OR_REF - CODED] = {2, 3, {0x02, 0x01, 0x1b}},
    [HAS_CONSTANT - CODED] = {2, 3, {0x04, 0x08, 0x17}},
    [HAS_CUSTOM_ATTRIBUTE -
        CODED] = {5, 22, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14,
                          0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b}},
    [HAS_FIELD_MARSHAL - CODED] = {1, 2, {0x04, 0x08}},
    [HAS_DECL_SECURITY - CODED] = {2, 3, {0x02, 0x06, 0x20}},
    [MEMBER_REF_PARENT - CODED] = {3, 5, {0x02, 0x01, 0x1a, 0x06, 0x1b}},
    [HAS_SEMANTICS - CODED] = {1, 2, {0x14, 0x17}},
    [METHOD_DEF_OR_REF - CODED] = {1, 2, {0x06, 0x0a}},
    [MEMBER_FORWARDED - CODED] = {1, 2, {0x04, 0x06}},
    [IMPLEMENTATION - CODED] = {2, 3, {0x26, 0x23, 0x27}},
    [CUSTOM_ATTRIBUTE_TYPE - CODED] = {3, 2, {0x06, 0x0a}},
    [RESOLUTION_SCOPE - CODED] = {2, 4, {0x00, 0x1a, 0x23, 0x01}},
    [TYPE_OR_METHOD_DEF - CODED] = {1, 2, {0x02, 0x06}},
};

static const uint8_t schema[SJ_ASSEMBLY_TABLES][SJ_ASSEMBLY_COLUMNS + 1] = {
    [0x00] = {TWO, STRING, GUID, GUID, GUID, END},
    [0x01] = {RESOLUTION_SCOPE, STRING, STRING, END},
    [0x02] = {FOUR, STRING, STRING, TYPE_DEF_OR_REF, 0x04, 0x06, END},
    [0x03] = {0x04, END},
    [0x04] = {TWO, STRING, BLOB, END},
    [0x05] = {0x06, END},
    [0x06] = {FOUR, TWO, TWO, STRING, BLOB, 0x08, END},
    [0x07] = {0x08, END},
    [0x08] = {TWO, TWO, STRING, END},
    [0x09] = {0x02, TYPE_DEF_OR_REF, END},
    [0x0a] = {MEMBER_REF_PARENT, STRING, BLOB, END},
    [0x0b] = {TWO, HAS_CONSTANT, BLOB, END},
    [0x0c] = {HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, BLOB, END},
    [0x0d] = {HAS_FIELD_MARSHAL, BLOB, END},
    [0x0e] = {TWO, HAS_DECL_SECURITY, BLOB, END},
    [0x0f] = {TWO, FOUR, 0x02, END},
    [0x10] = {FOUR, 0x04, END},
    [0x11] = {BLOB, END},
    [0x12] = {0x02, 0x14, END},
    [0x13] = {0x14, END},
    [0x14] = {TWO, STRING, TYPE_DEF_OR_REF, END},
    [0x15] = {0x02, 0x17, END},
    [0x16] = {0x17, END},
    [0x17] = {TWO, STRING, BLOB, END},
    [0x18] = {TWO, 0x06, HAS_SEMANTICS, END},
    [0x19] = {0x02, METHOD_DEF_OR_REF, METHOD_DEF_OR_REF, END},
    [0x1a] = {STRING, END},
    [0x1b] = {BLOB, END},
    [0x1c] = {TWO, MEMBER_FORWARDED, STRING, 0x1a, END},
    [0x1d] = {FOUR, 0x04, END},
    [0x1e] = {FOUR, FOUR, END},
    [0x1f] = {FOUR, END},
    [0x20] = {FOUR, TWO, TWO, TWO, TWO, FOUR, BLOB, STRING, STRING, END},
    [0x21] = {FOUR, END},
    [0x22] = {FOUR, FOUR, FOUR, END},
    [0x23] = {TWO, TWO, TWO, TWO, FOUR, BLOB, STRING, STRING, BLOB, END},
    [0x24] = {FOUR, 0x23, END},
    [0x25] = {FOUR, FOUR, FOUR, 0x23, END},
    [0x26] = {FOUR, STRING, BLOB, END},
    [0x27] = {FOUR, FOUR, STRING, STRING, IMPLEMENTATION, END},
    [0x28] = {FOUR, FOUR, STRING, IMPLEMENTATION, END},
    [0x29] = {0x02, 0x02, END},
    [0x2a] = {TWO, TWO, TYPE_OR_METHOD_DEF, STRING, END},
    [0x2b] = {METHOD_DEF_OR_REF, BLOB, END},
    [0x2c] = {0x2a, TYPE_DEF_OR_REF, END},
};

static sj_slice part_of(sj_slice whole, uint64_t offset, uint64_t size)
{
    const bool fits = whole.data != NULL && offset <= whole.size && size <= whole.size - offset;
    return fits ? (sj_slice){.data = whole.data + offset, .size = (size_t)size} : (sj_slice){0};
}

static sj_reader reader_at(sj_slice whole, uint64_t offset)
{
    const sj_slice rest =
        offset <= whole.size ? part_of(whole, offset, whole.size - offset) : (sj_slice){0};
    return sj_reader_of(rest.data, rest.size);
}

/* Returns `size` bytes of the file, from the byte on that the loader maps at the relative virtual
 * address `address`. Returns an empty slice if no section has that address. */
static sj_slice find_address(sj_slice file, sj_reader sections, uint32_t count, uint32_t address,
                             uint32_t size)
{
    for (uint32_t i = 0; i < count && i < SECTIONS_MAX; i++) {
        (void)sj_read_bytes(&sections, 8); /* Name. */
        (void)sj_read_u32(&sections);      /* Size in memory. */
        const uint32_t start = sj_read_u32(&sections);
        const uint32_t raw_size = sj_read_u32(&sections);
        const uint32_t raw = sj_read_u32(&sections);
        (void)sj_read_bytes(&sections, 16);
        if (!sections.bad && address >= start && address - start < raw_size) {
            return part_of(file, (uint64_t)raw + (address - start), size);
        }
    }
    return (sj_slice){0};
}

/* A PE file, and the parts of its headers that locate its directories. */
typedef struct pe_file {
    sj_slice file;
    sj_slice options; /* The optional header. */
    sj_reader sections;
    uint32_t section_count;
    uint32_t directories; /* Offset of the directories in `options`. */
} pe_file;

static sj_status read_head(sj_slice file, pe_file *pe)
{
    sj_reader head = reader_at(file, 0);
    const uint16_t mz = sj_read_u16(&head);
    head = reader_at(file, PE_OFFSET);
    head = reader_at(file, sj_read_u32(&head));
    const uint32_t signature = sj_read_u32(&head);
    (void)sj_read_u16(&head); /* Machine. */
    const uint16_t section_count = sj_read_u16(&head);
    (void)sj_read_bytes(&head, 12);
    const uint16_t optional_bytes = sj_read_u16(&head);
    (void)sj_read_u16(&head); /* Characteristics. */
    const uint8_t *optional = sj_read_bytes(&head, optional_bytes);
    if (mz != MZ || signature != PE_SIGNATURE || optional == NULL) {
        return SJ_ECORRUPT;
    }
    *pe = (pe_file){.file = file,
                    .options = {.data = optional, .size = optional_bytes},
                    .sections = head,
                    .section_count = section_count};
    sj_reader fields = reader_at(pe->options, 0);
    const uint16_t magic = sj_read_u16(&fields);
    pe->directories = magic == PE32_MAGIC ? 96 : 112;
    return magic == PE32_MAGIC || magic == PE32_PLUS_MAGIC ? SJ_OK : SJ_ECORRUPT;
}

static sj_slice find_directory(const pe_file *pe, uint32_t number)
{
    sj_reader fields = reader_at(pe->options, pe->directories + number * 8);
    const uint32_t address = sj_read_u32(&fields);
    const uint32_t bytes = sj_read_u32(&fields);
    return find_address(pe->file, pe->sections, pe->section_count, address, bytes);
}

static sj_status find_metadata(sj_slice file, sj_slice *metadata)
{
    pe_file pe;
    SJ_TRY(read_head(file, &pe));
    sj_reader fields = reader_at(find_directory(&pe, CLI_DIRECTORY), 8);
    const uint32_t address = sj_read_u32(&fields);
    const uint32_t size = sj_read_u32(&fields);
    *metadata = find_address(file, pe.sections, pe.section_count, address, size);
    return fields.bad || metadata->data == NULL ? SJ_ECORRUPT : SJ_OK;
}

typedef struct debug_entry {
    const uint8_t *stamp;
    uint16_t minor;
    uint32_t type;
    sj_slice data;
} debug_entry;

/* Reads the next entry of a debug directory. Returns false after the last entry. */
static bool next_debug_entry(sj_slice file, sj_reader *entries, debug_entry *entry)
{
    enum { ENTRY_BYTES = 28 };
    if (sj_reader_left(entries) < ENTRY_BYTES) {
        return false;
    }
    (void)sj_read_u32(entries);
    entry->stamp = sj_read_bytes(entries, 4);
    (void)sj_read_u16(entries);
    entry->minor = sj_read_u16(entries);
    entry->type = sj_read_u32(entries);
    const uint32_t bytes = sj_read_u32(entries);
    (void)sj_read_u32(entries); /* Address. */
    entry->data = part_of(file, sj_read_u32(entries), bytes);
    return true;
}

static sj_reader debug_entries(sj_slice file)
{
    pe_file pe;
    const sj_slice directory =
        read_head(file, &pe) == SJ_OK ? find_directory(&pe, DEBUG_DIRECTORY) : (sj_slice){0};
    return sj_reader_of(directory.data, directory.size);
}

bool sj_assembly_pdb_id(sj_slice file, uint8_t id[SJ_PORTABLE_PDB_ID_BYTES])
{
    enum { CODE_VIEW = 2, RSDS = 0x53445352, PORTABLE = 0x504d };
    debug_entry entry;
    for (sj_reader entries = debug_entries(file); next_debug_entry(file, &entries, &entry);) {
        sj_reader view = sj_reader_of(entry.data.data, entry.data.size);
        const uint32_t signature = sj_read_u32(&view);
        const uint8_t *guid = sj_read_bytes(&view, SJ_ASSEMBLY_ID_BYTES);
        if (entry.type == CODE_VIEW && entry.minor == PORTABLE && signature == RSDS &&
            guid != NULL) {
            memcpy(id, guid, SJ_ASSEMBLY_ID_BYTES);
            memcpy(id + SJ_ASSEMBLY_ID_BYTES, entry.stamp, 4);
            return true;
        }
    }
    return false;
}

sj_slice sj_assembly_embedded_pdb(sj_slice file, uint32_t *size)
{
    enum { EMBEDDED = 17, MPDB = 0x4244504d };
    debug_entry entry;
    for (sj_reader entries = debug_entries(file); next_debug_entry(file, &entries, &entry);) {
        sj_reader data = sj_reader_of(entry.data.data, entry.data.size);
        const uint32_t signature = sj_read_u32(&data);
        *size = sj_read_u32(&data);
        if (entry.type == EMBEDDED && signature == MPDB && !data.bad) {
            return (sj_slice){.data = data.at, .size = sj_reader_left(&data)};
        }
    }
    return (sj_slice){0};
}

/* Returns the size in bytes of an index into a heap. `heaps` is the HeapSizes field of the table
 * stream's header. */
static uint8_t heap_bytes(uint8_t heaps, unsigned bit)
{
    return (heaps >> bit & 1) != 0 ? 4 : 2;
}

static uint8_t column_bytes(const sj_assembly *assembly, uint8_t heaps, uint8_t column)
{
    switch (column) {
    case TWO:
        return 2;
    case FOUR:
        return 4;
    case STRING:
        return heap_bytes(heaps, 0);
    case GUID:
        return heap_bytes(heaps, 1);
    case BLOB:
        return heap_bytes(heaps, 2);
    default:
        break;
    }
    if (column < CODED) {
        return assembly->tables[column].rows < 0x10000 ? 2 : 4;
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < codings[column - CODED].count; i++) {
        const uint32_t rows = assembly->tables[codings[column - CODED].tables[i]].rows;
        most = rows > most ? rows : most;
    }
    return most < UINT32_C(1) << (16 - codings[column - CODED].bits) ? 2 : 4;
}

static void lay_out(sj_assembly *assembly, uint8_t heaps, uint32_t number)
{
    sj_assembly_table *table = &assembly->tables[number];
    for (uint32_t i = 0; i < SJ_ASSEMBLY_COLUMNS && schema[number][i] != END; i++) {
        table->offsets[i] = (uint8_t)table->row_bytes;
        table->sizes[i] = column_bytes(assembly, heaps, schema[number][i]);
        table->row_bytes += table->sizes[i];
    }
}

static sj_status read_tables(sj_assembly *assembly, sj_slice stream)
{
    sj_reader reader = reader_at(stream, 6);
    const uint8_t heaps = sj_read_u8(&reader);
    (void)sj_read_u8(&reader);
    const uint64_t present = sj_read_u64(&reader);
    (void)sj_read_u64(&reader); /* Bit mask of the sorted tables. */
    if (present >> SJ_ASSEMBLY_TABLES != 0) {
        return SJ_ECORRUPT;
    }
    for (uint32_t i = 0; i < SJ_ASSEMBLY_TABLES; i++) {
        assembly->tables[i].rows = (present >> i & 1) != 0 ? sj_read_u32(&reader) : 0;
    }
    if ((heaps & 0x40) != 0) {
        (void)sj_read_u32(&reader); /* Extra data that edit-and-continue writes. */
    }
    for (uint32_t i = 0; i < SJ_ASSEMBLY_TABLES; i++) {
        lay_out(assembly, heaps, i);
    }
    for (uint32_t i = 0; i < SJ_ASSEMBLY_TABLES; i++) {
        sj_assembly_table *table = &assembly->tables[i];
        table->first = sj_read_bytes(&reader, (size_t)table->rows * table->row_bytes);
        table->rows = table->first != NULL ? table->rows : 0;
    }
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

static const char *read_name(sj_reader *reader)
{
    const char *name = (const char *)reader->at;
    const size_t bytes = strnlen(name, sj_reader_left(reader)) + 1;
    return sj_read_bytes(reader, (bytes + 3) / 4 * 4) != NULL ? name : "";
}

/* Returns the member of `metadata` for a stream of this name. Returns NULL if the stream is not
 * read. */
static sj_slice *place_of(sj_metadata *metadata, const char *name)
{
    return strcmp(name, "#~") == 0 || strcmp(name, "#-") == 0 ? &metadata->tables
           : strcmp(name, "#Strings") == 0                    ? &metadata->strings
           : strcmp(name, "#Blob") == 0                       ? &metadata->blobs
           : strcmp(name, "#GUID") == 0                       ? &metadata->guids
           : strcmp(name, "#Pdb") == 0                        ? &metadata->pdb
                                                              : NULL;
}

sj_status sj_metadata_open(sj_slice bytes, sj_metadata *metadata)
{
    *metadata = (sj_metadata){0};
    sj_reader root = reader_at(bytes, 0);
    const uint32_t signature = sj_read_u32(&root);
    (void)sj_read_bytes(&root, 8);
    const uint32_t version_bytes = sj_read_u32(&root);
    if (signature != METADATA_SIGNATURE || version_bytes > VERSION_MAX_BYTES) {
        return SJ_ECORRUPT;
    }
    (void)sj_read_bytes(&root, (version_bytes + 3) / 4 * 4);
    (void)sj_read_u16(&root);
    const uint16_t count = sj_read_u16(&root);
    for (uint32_t i = 0; i < count && i < STREAMS_MAX && !root.bad; i++) {
        const uint32_t offset = sj_read_u32(&root);
        const uint32_t size = sj_read_u32(&root);
        sj_slice *place = place_of(metadata, read_name(&root));
        if (place != NULL) {
            *place = part_of(bytes, offset, size);
        }
    }
    return metadata->tables.data != NULL ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_assembly_open(sj_slice file, sj_assembly *assembly)
{
    sj_slice metadata;
    *assembly = (sj_assembly){0};
    SJ_TRY(find_metadata(file, &metadata));
    SJ_TRY(sj_metadata_open(metadata, &assembly->metadata));
    return read_tables(assembly, assembly->metadata.tables);
}

uint32_t sj_assembly_cell(const sj_assembly *assembly, uint32_t table, uint32_t row,
                          uint32_t column)
{
    const sj_assembly_table *of = &assembly->tables[table];
    if (row == 0 || row > of->rows || of->sizes[column] == 0) {
        return 0;
    }
    const uint8_t *cell = of->first + (size_t)(row - 1) * of->row_bytes + of->offsets[column];
    sj_reader reader = sj_reader_of(cell, of->sizes[column]);
    return of->sizes[column] == 2 ? sj_read_u16(&reader) : sj_read_u32(&reader);
}

const char *sj_assembly_string(const sj_assembly *assembly, uint32_t index)
{
    const sj_slice heap = assembly->metadata.strings;
    const bool is_text =
        index < heap.size && memchr(heap.data + index, '\0', heap.size - index) != NULL;
    return is_text ? (const char *)heap.data + index : "";
}

uint32_t sj_assembly_compressed(sj_reader *reader)
{
    const uint32_t first = sj_read_u8(reader);
    if ((first & 0x80) == 0) {
        return first;
    }
    const uint32_t second = sj_read_u8(reader);
    if ((first & 0x40) == 0) {
        return (first & 0x3f) << 8 | second;
    }
    const uint32_t third = sj_read_u8(reader);
    return (first & 0x1f) << 24 | second << 16 | third << 8 | sj_read_u8(reader);
}

sj_slice sj_metadata_blob(const sj_metadata *metadata, uint32_t index)
{
    sj_reader reader = reader_at(metadata->blobs, index);
    const uint32_t size = sj_assembly_compressed(&reader);
    const uint8_t *bytes = sj_read_bytes(&reader, size);
    return bytes != NULL ? (sj_slice){.data = bytes, .size = size} : (sj_slice){0};
}

sj_slice sj_assembly_blob(const sj_assembly *assembly, uint32_t index)
{
    return sj_metadata_blob(&assembly->metadata, index);
}

const uint8_t *sj_assembly_id(const sj_assembly *assembly)
{
    const uint64_t index = sj_assembly_cell(assembly, SJ_TABLE_MODULE, 1, 2);
    return index != 0 ? part_of(assembly->metadata.guids, (index - 1) * SJ_ASSEMBLY_ID_BYTES,
                                SJ_ASSEMBLY_ID_BYTES)
                            .data
                      : NULL;
}
