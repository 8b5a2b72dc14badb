/* android-trace: method traces of Android's runtimes, versions 1 to 3, as a file or streamed. A
 * file has a text with threads and methods, then records. A stream has records, and names threads
 * and methods between them. Times are microseconds; of two clocks, the wall clock is kept. The
 * layout is that of Android's runtime/trace.cc and of its tool dmtracedump. */
#include "collector-server/import/importer.h"
#include "proto/base/hash_map.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 64 * 1024,
    MAGIC = 0x574f4c53, /* "SLOW" */
    STREAMED = 0xf0,    /* bits of a stream's version */
    HEADER_BYTES = 16,
    MOST_RECORD_BYTES = 64,
    ACTION_BITS = 2,
    COLUMNS = 5,
    US_NS = 1000,
    NEW_METHOD = 1, /* follows thread 0 in a stream */
    NEW_THREAD = 2,
    SUMMARY = 3
};

typedef enum method_action { METHOD_ENTER, METHOD_EXIT, METHOD_UNWIND } method_action;

typedef struct trace_reader {
    sj_source *source;
    sj_import_log *log;
    uint64_t at; /* offset of the line or record */
    char *line;  /* LINE_BYTES */
    int64_t pid; /* 0: unknown */
    int64_t start_us;
    uint16_t version;
    uint16_t record_bytes; /* with the number of the thread */
    uint64_t records, expected;
    bool has_expected, has_overflow, has_end;
    sj_hash_map methods; /* functions by method number */
    uint64_t unnamed;
} trace_reader;

static sj_status refuse(const trace_reader *reader, const char *what)
{
    return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at, "%s", what);
}

/* Cuts a line at its tabs. Returns the number of columns; others are empty. */
static int split(char *line, char *columns[COLUMNS])
{
    int count = 0;
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = line;
        count += *line != '\0' ? 1 : 0;
        line += strcspn(line, "\t\n");
        if (*line != '\0') {
            *line++ = '\0';
        }
    }
    return count;
}

/* Reads "NUMBER<tab>CLASS<tab>METHOD<tab>SIGNATURE<tab>FILE". */
static sj_status add_method(trace_reader *reader, char *line)
{
    char name[LINE_BYTES];
    char *columns[COLUMNS];
    char *end;
    uint32_t function;
    const int count = split(line, columns);
    const unsigned long long number = strtoull(columns[0], &end, 0);
    if (count < 3 || *end != '\0' || number > UINT32_MAX) {
        return refuse(reader, "the line of a method is not \"NUMBER CLASS METHOD\"");
    }
    if (snprintf(name, sizeof(name), "%s.%s%s", columns[1], columns[2], columns[3]) >=
        (int)sizeof(name)) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_import_log_function(reader->log, sj_import_text(name), sj_import_text(columns[4]),
                                  &function));
    return sj_hash_map_put(
        &reader->methods,
        &(sj_hash_entry){.key = number >> ACTION_BITS, .sub = 1, .first = function});
}

static sj_status add_thread(trace_reader *reader, char *line)
{
    char *end;
    uint32_t thread;
    const unsigned long long tid = strtoull(line, &end, 10);
    if (end == line || *end != '\t' || tid > UINT16_MAX) {
        return refuse(reader, "the line of a thread is not \"NUMBER NAME\"");
    }
    SJ_TRY(sj_import_log_thread(reader->log, reader->pid, (int64_t)tid, &thread));
    return sj_import_log_name_thread(reader->log, thread, sj_import_text(end + 1));
}

/* Reads a line "KEY=VALUE". */
static void read_key(trace_reader *reader, const char *line)
{
    if (strncmp(line, "num-method-calls=", 17) == 0) {
        reader->expected = strtoull(line + 17, NULL, 10);
        reader->has_expected = true;
    } else if (strncmp(line, "pid=", 4) == 0) {
        reader->pid = strtoll(line + 4, NULL, 10);
    } else if (strcmp(line, "data-file-overflow=true") == 0) {
        reader->has_overflow = true;
    }
}

/* Reads the text up to the line "*end". */
static sj_status read_text(trace_reader *reader)
{
    char section = '\0';
    for (;;) {
        size_t size;
        bool is_line;
        reader->at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_line(reader->source, reader->line, LINE_BYTES, &size, &is_line));
        if (!is_line) {
            return refuse(reader, "the file ends before the line \"*end\"");
        }
        if (strcmp(reader->line, "*end") == 0) {
            return SJ_OK;
        }
        if (reader->line[0] == '*') {
            section = reader->line[1];
        } else if (section == 't') {
            SJ_TRY(add_thread(reader, reader->line));
        } else if (section == 'm') {
            SJ_TRY(add_method(reader, reader->line));
        } else {
            read_key(reader, reader->line);
        }
    }
}

/* Reads the header of the records: "SLOW", version, length of the header, start, record size. */
static sj_status read_header(trace_reader *reader)
{
    static const uint16_t record_bytes[] = {0, 9, 10, 10};
    uint8_t bytes[HEADER_BYTES];
    reader->at = sj_source_offset(reader->source);
    SJ_TRY(sj_source_bytes(reader->source, bytes, sizeof(bytes), "the header of the records"));
    sj_reader header = sj_reader_of(bytes, sizeof(bytes));
    const uint32_t magic = sj_read_u32(&header);
    reader->version = sj_read_u16(&header);
    const uint16_t size = sj_read_u16(&header);
    const uint16_t version = reader->version & (uint16_t)~STREAMED;
    reader->start_us = (int64_t)sj_read_u64(&header);
    if (magic != MAGIC || size < HEADER_BYTES) {
        return refuse(reader, "the records do not begin with \"SLOW\"");
    }
    if (version == 0 || version >= sizeof(record_bytes) / sizeof(record_bytes[0])) {
        return sj_source_fail(reader->source, SJ_EVERSION, reader->at,
                              "method traces of version %u cannot be imported", version);
    }
    reader->record_bytes = record_bytes[version];
    for (int i = 0; i < size - HEADER_BYTES; i++) {
        uint8_t byte;
        SJ_TRY(sj_source_bytes(reader->source, &byte, 1, "the header of the records"));
        if (version == 3 && i < 2) {
            reader->record_bytes = (uint16_t)(i == 0 ? byte : reader->record_bytes | byte << 8);
        }
    }
    return reader->record_bytes >= 9 && reader->record_bytes <= MOST_RECORD_BYTES
               ? SJ_OK
               : refuse(reader, "the size of a record is unknown");
}

static sj_status find_method(trace_reader *reader, uint32_t number, uint32_t *function)
{
    char name[32];
    const sj_hash_entry *known =
        sj_hash_map_find(&reader->methods, (uint64_t)number >> ACTION_BITS, 1);
    if (known != NULL) {
        *function = known->first;
        return SJ_OK;
    }
    reader->unnamed++;
    (void)snprintf(name, sizeof(name), "method 0x%x", number & ~3U);
    return sj_import_log_function(reader->log, sj_import_text(name), (sj_slice){0}, function);
}

/* Adds the record of a thread: the method with its action, then one or two times. */
static sj_status add_record(trace_reader *reader, uint16_t tid, sj_reader *record)
{
    uint32_t thread;
    uint32_t function;
    const uint32_t method = sj_read_u32(record);
    uint32_t time_us = sj_read_u32(record);
    if (sj_reader_left(record) >= sizeof(uint32_t)) {
        time_us = sj_read_u32(record); /* the wall clock follows the thread's */
    }
    const int64_t at_ns = (int64_t)time_us * US_NS;
    const uint32_t action = method & ((1U << ACTION_BITS) - 1);
    if (record->bad || action > METHOD_UNWIND) {
        return refuse(reader, "this is not a record");
    }
    reader->records++;
    SJ_TRY(sj_import_log_thread(reader->log, reader->pid, tid, &thread));
    if (action != METHOD_ENTER) {
        return sj_import_log_leave(reader->log, thread, at_ns, action == METHOD_UNWIND);
    }
    SJ_TRY(find_method(reader, method, &function));
    return sj_import_log_enter(reader->log, thread, function, at_ns);
}

static sj_status read_file_records(trace_reader *reader)
{
    while (sj_source_peek(reader->source) != SJ_SOURCE_END) {
        uint8_t bytes[MOST_RECORD_BYTES];
        reader->at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_bytes(reader->source, bytes, reader->record_bytes, "a record"));
        sj_reader record = sj_reader_of(bytes, reader->record_bytes);
        const uint16_t tid = reader->version == 1 ? sj_read_u8(&record) : sj_read_u16(&record);
        SJ_TRY(add_record(reader, tid, &record));
    }
    reader->at = sj_source_offset(reader->source);
    return reader->has_expected && reader->records != reader->expected
               ? refuse(reader,
                        "the number of records is not the one in the file's text: it is cut "
                        "or damaged")
               : SJ_OK;
}

/* Reads a text of `size` bytes. */
static sj_status read_bytes(trace_reader *reader, uint32_t size)
{
    if (size >= LINE_BYTES) {
        return refuse(reader, "a text is too long");
    }
    SJ_TRY(sj_source_bytes(reader->source, reader->line, size, "a text"));
    reader->line[size] = '\0';
    return SJ_OK;
}

/* Reads what follows thread 0 in a stream: a method, a thread, or the text at the end. */
static sj_status read_special(trace_reader *reader)
{
    uint8_t bytes[5];
    uint32_t thread;
    SJ_TRY(sj_source_bytes(reader->source, bytes, 3, "a record"));
    sj_reader header = sj_reader_of(bytes + 1, 4);
    switch (bytes[0]) {
    case NEW_METHOD:
        SJ_TRY(read_bytes(reader, sj_read_u16(&header)));
        return add_method(reader, reader->line);
    case NEW_THREAD: {
        SJ_TRY(sj_source_bytes(reader->source, bytes + 3, 2, "a record"));
        const uint16_t tid = sj_read_u16(&header);
        SJ_TRY(read_bytes(reader, sj_read_u16(&header)));
        SJ_TRY(sj_import_log_thread(reader->log, reader->pid, tid, &thread));
        return sj_import_log_name_thread(reader->log, thread, sj_import_text(reader->line));
    }
    case SUMMARY:
        SJ_TRY(sj_source_bytes(reader->source, bytes + 3, 2, "a record"));
        reader->has_end = true;
        for (uint32_t left = sj_read_u32(&header); left > 0; left--) {
            SJ_TRY(sj_source_bytes(reader->source, bytes, 1, "the text at its end"));
        }
        return SJ_OK;
    default:
        return refuse(reader, "this is not a record of a stream");
    }
}

static sj_status read_stream_records(trace_reader *reader)
{
    while (!reader->has_end) {
        uint8_t bytes[MOST_RECORD_BYTES];
        reader->at = sj_source_offset(reader->source);
        SJ_TRY(sj_source_bytes(reader->source, bytes, 2, "a record, without the text at its end"));
        sj_reader record = sj_reader_of(bytes, reader->record_bytes);
        const uint16_t tid = sj_read_u16(&record);
        if (tid == 0) {
            SJ_TRY(read_special(reader));
            continue;
        }
        SJ_TRY(sj_source_bytes(reader->source, bytes + 2, reader->record_bytes - 2U, "a record"));
        SJ_TRY(add_record(reader, tid, &record));
    }
    reader->at = sj_source_offset(reader->source);
    return sj_source_peek(reader->source) == SJ_SOURCE_END ? SJ_OK
                                                           : refuse(reader, "data after the end");
}

static sj_status read_trace(trace_reader *reader)
{
    if (sj_source_peek(reader->source) == '*') {
        SJ_TRY(read_text(reader));
    }
    SJ_TRY(read_header(reader));
    return (reader->version & STREAMED) != 0 ? read_stream_records(reader)
                                             : read_file_records(reader);
}

static sj_status read_android(sj_source *source, sj_import_log *log)
{
    trace_reader reader = {.source = source, .log = log, .line = malloc(LINE_BYTES)};
    const sj_status status = reader.line != NULL ? read_trace(&reader) : SJ_ENOMEM;
    free(reader.line);
    sj_hash_map_deinit(&reader.methods);
    if (reader.has_overflow) {
        sj_import_log_note(log, "the buffer of the trace was full: later calls are missing");
    }
    if (reader.unnamed != 0) {
        sj_import_log_note(log, "the file does not name the methods of %s",
                           SJ_COUNTED(reader.unnamed, "entry"));
    }
    sj_import_log_note(log, "times are whole microseconds; CPU times are not kept");
    return status;
}

static bool recognizes_android(sj_slice head)
{
    static const char *const begins[] = {"*version\n", "SLOW"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        const size_t size = strlen(begins[i]);
        if (head.size >= size && memcmp(head.data, begins[i], size) == 0) {
            return true;
        }
    }
    return false;
}

const sj_importer sj_importer_android_trace = {
    .name = "android-trace",
    .summary = "method traces of Android (.trace)",
    .recognizes = recognizes_android,
    .read = read_android,
};
