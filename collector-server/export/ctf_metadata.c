#include "collector-server/export/ctf_metadata.h"

#include "collector-server/export/clean_name.h"
#include "proto/base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NS_OF_S = 1000000000, FIRST_PRINTABLE = 0x20 };

static const char types[] =
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n";

static const char layout[] =
    "typealias integer { size = 64; align = 8; signed = false;"
    " map = clock.session.value; } := time_t;\n\n"
    "stream {\n"
    "    packet.context := struct {\n"
    "        time_t timestamp_begin;\n"
    "        time_t timestamp_end;\n"
    "        uint64_t content_size;\n"
    "        uint64_t packet_size;\n"
    "        uint64_t events_discarded;\n"
    "        int64_t pid;\n"
    "        int64_t tid;\n"
    "        string { encoding = UTF8; } process;\n"
    "        string { encoding = UTF8; } thread;\n"
    "    };\n"
    "    event.header := struct { uint8_t id; time_t timestamp; };\n"
    "};\n\n"
    "event {\n"
    "    name = \"call_begin\";\n"
    "    id = 0;\n"
    "    fields := struct {\n"
    "        function_t function;\n"
    "        enum : uint8_t { \"returned\" = 0, \"unwound\" = 1, \"open\" = 2, \"truncated\" = 3 }"
    " ending;\n"
    "        uint8_t is_tail_call;\n"
    "        uint8_t is_estimate;\n"
    "        string { encoding = UTF8; } recorded;\n"
    "    };\n"
    "};\n\n"
    "event {\n"
    "    name = \"call_end\";\n"
    "    id = 1;\n"
    "    fields := struct { function_t function; };\n"
    "};\n";

/* Writes a text as a literal of TSDL. */
static sj_status write_literal(FILE *output, const char *text)
{
    char *clean = sj_clean_name(text != NULL ? text : "");
    if (clean == NULL) {
        return SJ_ENOMEM;
    }
    fputc('"', output);
    for (const char *at = clean; *at != '\0'; at++) {
        if ((unsigned char)*at < FIRST_PRINTABLE) {
            fprintf(output, "\\%03o", (unsigned)(unsigned char)*at);
        } else {
            fprintf(output, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
        }
    }
    fputc('"', output);
    free(clean);
    return SJ_OK;
}

static void write_uuid(FILE *output, const uint8_t *uuid)
{
    fputs("    uuid = \"", output);
    for (size_t i = 0; i < SJ_CTF_UUID_BYTES; i++) {
        fprintf(output, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    }
    fputs("\";\n", output);
}

/* Writes the clock and the environment. */
static sj_status write_session(const sj_ctf_trace *trace, sqlite3 *database, FILE *output)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database,
                                    "SELECT started_realtime_ns, name, command FROM sessions "
                                    "WHERE session_id = ?1",
                                    -1, &row, NULL);
    sj_status status = SJ_EIO;
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, trace->session_id);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW) {
        const int64_t started_ns = sqlite3_column_int64(row, 0);
        fputs("env {\n    tracer_name = \"sojourn\";\n    session_name = ", output);
        status = write_literal(output, (const char *)sqlite3_column_text(row, 1));
        fputs(";\n    command = ", output);
        status = status == SJ_OK ? write_literal(output, (const char *)sqlite3_column_text(row, 2))
                                 : status;
        fprintf(output,
                ";\n};\n\nclock {\n    name = \"session\";\n    description = \"time since the "
                "begin of the session\";\n    freq = %d;\n    offset_s = %" PRId64
                ";\n    offset = %" PRId64 ";\n};\n\n",
                NS_OF_S, started_ns / NS_OF_S, started_ns % NS_OF_S);
    }
    sqlite3_finalize(row);
    return status;
}

/* Writes the names of the functions as an enumeration. */
static sj_status write_functions(const sj_ctf_trace *trace, sqlite3 *database, FILE *output)
{
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_OK;
    if (sqlite3_prepare_v2(database, "SELECT name FROM functions WHERE function_id = ?1", -1, &row,
                           NULL) != SQLITE_OK) {
        return SJ_EIO;
    }
    fputs("typealias enum : uint32_t {\n", output);
    for (size_t i = 0; i < trace->function_count && status == SJ_OK; i++) {
        sqlite3_bind_int64(row, 1, trace->function_ids[i]);
        const int result = sqlite3_step(row);
        const char *name = result == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
        status = result == SQLITE_ROW || result == SQLITE_DONE
                     ? write_literal(output, name != NULL ? name : "(unknown function)")
                     : SJ_EIO;
        fprintf(output, " = %" PRId64 "%s\n", trace->function_ids[i],
                i + 1 < trace->function_count ? "," : "");
        sqlite3_reset(row);
    }
    if (trace->function_count == 0) {
        fputs("\"(no calls)\" = 0\n", output);
    }
    fputs("} := function_t;\n\n", output);
    sqlite3_finalize(row);
    return status;
}

sj_status sj_ctf_trace_read(sj_ctf_trace *trace, sqlite3 *database, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(database, "SELECT uuid FROM sessions WHERE session_id = ?1", -1,
                                    &row, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, trace->session_id);
        result = sqlite3_step(row);
    }
    if (result == SQLITE_ROW && sqlite3_column_bytes(row, 0) == SJ_CTF_UUID_BYTES) {
        memcpy(trace->uuid, sqlite3_column_blob(row, 0), SJ_CTF_UUID_BYTES);
    }
    sqlite3_finalize(row);
    return result == SQLITE_ROW
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read the session: %s", sqlite3_errmsg(database));
}

sj_status sj_ctf_metadata_write(const sj_ctf_trace *trace, sqlite3 *database, FILE *output,
                                sj_error *error)
{
    fprintf(output, "/* CTF 1.8 */\n\n%s\ntrace {\n    major = 1;\n    minor = 8;\n", types);
    write_uuid(output, trace->uuid);
    fputs("    byte_order = le;\n    packet.header := struct { uint32_t magic; uint8_t uuid[16]; "
          "uint32_t stream_id; uint64_t stream_instance_id; };\n};\n\n",
          output);
    sj_status status = write_session(trace, database, output);
    if (status == SJ_OK) {
        status = write_functions(trace, database, output);
    }
    fputs(layout, output);
    if (status == SJ_EIO) {
        return sj_fail(error, status, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    return status == SJ_ENOMEM ? sj_fail(error, status, "no memory for the name of a function")
                               : status;
}
