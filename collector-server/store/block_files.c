#include "collector-server/store/block_files.h"

#include "collector-server/store/block_place.h"
#include "proto/base/crc32c.h"
#include "proto/block/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sj_block_files {
    sqlite3 *database;
    const char *schema;
    sqlite3_stmt *find; /* prepared on first use */
    const sj_block_place_kind *kind;
    sj_place_file file; /* the file `file_id`, kept open because blocks are read in sequence */
    int64_t file_id;    /* 0: no file is open */
    char name[512];     /* path and session, for error texts */
    uint8_t *bytes;
};

/* Parses digits only, because strtoull also accepts blanks and signs. */
static bool read_number(const char **text, int base, char end, uint64_t *number)
{
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    const size_t length = strspn(*text, digits);
    if (length == 0 || length > 18 || (*text)[length] != end) {
        return false;
    }
    *number = strtoull(*text, NULL, base);
    *text += length + (end != '\0');
    return true;
}

sj_status sj_moved_block_read(const char *text, sj_moved_block *place)
{
    static const char prefix[] = "file:";
    uint64_t file = 0, offset = 0, size = 0, checksum = 0;
    if (text == NULL || strncmp(text, prefix, sizeof(prefix) - 1) != 0) {
        return SJ_EINVAL;
    }
    text += sizeof(prefix) - 1;
    if (!read_number(&text, 10, ':', &file) || !read_number(&text, 10, ':', &offset) ||
        !read_number(&text, 10, ':', &size) || !read_number(&text, 16, '\0', &checksum) ||
        size == 0 || size > SJ_BLOCK_MAX_BYTES || checksum > UINT32_MAX) {
        return SJ_EINVAL;
    }
    *place = (sj_moved_block){.file_id = (int64_t)file,
                              .offset = offset,
                              .size = (uint32_t)size,
                              .checksum = (uint32_t)checksum};
    return SJ_OK;
}

void sj_moved_block_write(const sj_moved_block *place, char text[SJ_STORAGE_TEXT_BYTES])
{
    snprintf(text, SJ_STORAGE_TEXT_BYTES, "file:%" PRId64 ":%" PRIu64 ":%" PRIu32 ":%08" PRIx32,
             place->file_id, place->offset, place->size, place->checksum);
}

sj_status sj_block_files_new(sqlite3 *database, const char *schema, sj_block_files **files)
{
    sj_block_files *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->database = database;
    made->schema = schema;
    *files = made;
    return SJ_OK;
}

static void close_current(sj_block_files *files)
{
    if (files->file_id != 0) {
        files->kind->close(&files->file);
        files->file_id = 0;
    }
}

void sj_block_files_free(sj_block_files *files)
{
    if (files == NULL) {
        return;
    }
    close_current(files);
    sqlite3_finalize(files->find);
    free(files->bytes);
    free(files);
}

static sj_status prepare(sj_block_files *files, sj_error *error)
{
    char *sql = files->find != NULL
                    ? NULL
                    : sqlite3_mprintf("SELECT p.kind, p.address, f.name, lower(hex(f.session_uuid))"
                                      " FROM \"%w\".block_files AS f JOIN \"%w\".block_places AS p"
                                      " USING (place_id) WHERE f.file_id = ?1",
                                      files->schema, files->schema);
    if (files->find == NULL &&
        (sql == NULL || sqlite3_prepare_v3(files->database, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                           &files->find, NULL) != SQLITE_OK)) {
        sqlite3_free(sql);
        return sj_fail(error, SJ_EIO, "cannot read block_files: %s",
                       sqlite3_errmsg(files->database));
    }
    sqlite3_free(sql);
    return files->bytes != NULL || (files->bytes = malloc(SJ_BLOCK_MAX_BYTES)) != NULL
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "no memory for a block");
}

/* Opens the file that the current row of `find` names. */
static sj_status open_row(sj_block_files *files, sj_error *error)
{
    const char *texts[4];
    sj_error why = {0};
    for (int i = 0; i < 4; i++) {
        texts[i] = (const char *)sqlite3_column_text(files->find, i);
        if (texts[i] == NULL) {
            return sj_fail(error, SJ_EIO, "block_files was changed by hand");
        }
    }
    snprintf(files->name, sizeof(files->name), "%.320s/%.120s of session %.32s", texts[1], texts[2],
             texts[3]);
    files->kind = sj_block_place_find(texts[0]);
    if (files->kind == NULL) {
        return sj_fail(error, SJ_EIO, "%s: its place is a \"%.32s\", which is not known here",
                       files->name, texts[0]);
    }
    return files->kind->open(texts[1], texts[2], &files->file, &why) == SJ_OK
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "%s (session %.32s)", why.text, texts[3]);
}

static sj_status open_file(sj_block_files *files, int64_t file_id, sj_error *error)
{
    if (files->file_id == file_id) {
        return SJ_OK;
    }
    close_current(files);
    sqlite3_bind_int64(files->find, 1, file_id);
    const sj_status status =
        sqlite3_step(files->find) == SQLITE_ROW
            ? open_row(files, error)
            : sj_fail(error, SJ_EIO, "block_files has no file %lld", (long long)file_id);
    sqlite3_reset(files->find);
    if (status == SJ_OK) {
        files->file_id = file_id;
    }
    return status;
}

static sj_status read_moved(sj_block_files *files, const sj_moved_block *place, sj_error *error)
{
    sj_error why = {0};
    SJ_TRY(open_file(files, place->file_id, error));
    if (files->kind->read(&files->file, place->offset, files->bytes, place->size, &why) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "%s: %s", files->name, why.text);
    }
    return sj_crc32c(0, files->bytes, place->size) == place->checksum
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT, "%s does not have the bytes that were moved to it",
                         files->name);
}

sj_status sj_block_files_get(sj_block_files *files, const char *storage, sj_slice data,
                             sj_slice *bytes, sj_error *error)
{
    sj_moved_block place;
    if (data.data != NULL) {
        *bytes = data;
        return SJ_OK;
    }
    if (storage == NULL || strcmp(storage, "inline") == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "its bytes are missing");
    }
    if (sj_moved_block_read(storage, &place) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "its storage, \"%.60s\", names no file", storage);
    }
    SJ_TRY(prepare(files, error));
    const bool was_open = files->file_id == place.file_id;
    sj_status status = read_moved(files, &place, error);
    if (status != SJ_OK && was_open) { /* the file_id may belong to another file since this file
                                        * was opened */
        close_current(files);
        status = read_moved(files, &place, error);
    }
    SJ_TRY(status);
    *bytes = (sj_slice){.data = files->bytes, .size = place.size};
    return SJ_OK;
}

sj_status sj_block_files_get_columns(sj_block_files *files, sqlite3_stmt *row, int storage,
                                     int data, sj_slice *bytes, sj_error *error)
{
    const void *blob = sqlite3_column_blob(row, data);
    return sj_block_files_get(
        files, (const char *)sqlite3_column_text(row, storage),
        (sj_slice){.data = blob, .size = (size_t)sqlite3_column_bytes(row, data)}, bytes, error);
}
