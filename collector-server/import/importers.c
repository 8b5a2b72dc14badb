#include "collector-server/import/importer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const sj_importer *const sj_importers[] = {
    &sj_importer_speedscope,
    &sj_importer_chrome_json,
    &sj_importer_perf_script,
    &sj_importer_folded,
    &sj_importer_uftrace,
    &sj_importer_callgrind,
    &sj_importer_pprof,
    &sj_importer_function_txt,
    &sj_importer_xray,
    &sj_importer_android_trace,
    &sj_importer_perfetto,
    &sj_importer_jfr,
    NULL,
};

const sj_importer *sj_importer_find(const char *name)
{
    for (size_t i = 0; sj_importers[i] != NULL; i++) {
        if (strcmp(sj_importers[i]->name, name) == 0) {
            return sj_importers[i];
        }
    }
    return NULL;
}

static const sj_importer *recognize(sj_source *source)
{
    const sj_slice head = sj_source_head(source);
    for (size_t i = 0; sj_importers[i] != NULL; i++) {
        if (sj_importers[i]->recognizes != NULL && sj_importers[i]->recognizes(head)) {
            return sj_importers[i];
        }
    }
    return NULL;
}

/* Fails because no importer takes the file. Says what to do with files that users confuse with
 * those that can be imported. */
static sj_status refuse_unknown(sj_source *source)
{
    static const struct {
        const char *begin;
        const char *advice;
    } known[] = {
        {"\x1f\x8b", "it is compressed; unpack it with gunzip first"},
        {"\x28\xb5\x2f\xfd", "it is compressed; unpack it with unzstd first"},
        {"\xfd"
         "7zXZ",
         "it is compressed; unpack it with unxz first"},
        {"PK\x03\x04", "it is an archive; unpack it with unzip first"},
        {"\xef\xbb\xbf", "it begins with a byte order mark; save it without one"},
        {"\xff\xfe", "it is not UTF-8; save it as UTF-8"},
        {"SQLite format 3",
         "it is a database; \"sojourn session import\" takes the sessions of one "
         "of Sojourn"},
        {"PERFILE2", "it is the data of perf record; import the text of \"perf script\""},
    };
    const sj_slice head = sj_source_head(source);
    if (head.size == 0 && ferror(source->file) != 0) {
        return sj_fail(source->error, SJ_EIO, "cannot read %s: %s", source->path, strerror(errno));
    }
    if (head.size == 0) {
        return sj_fail(source->error, SJ_ECORRUPT, "%s: it is empty", source->path);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const size_t size = strlen(known[i].begin);
        if (head.size >= size && memcmp(head.data, known[i].begin, size) == 0) {
            return sj_fail(source->error, SJ_EUNSUPPORTED, "%s: %s", source->path, known[i].advice);
        }
    }
    return sj_fail(source->error, SJ_EUNSUPPORTED,
                   "%s: its format is not known; \"sojourn import --help\" lists the formats, and "
                   "--format names one",
                   source->path);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static sj_status explain(const sj_source *source, sj_status status)
{
    if (source->error->text[0] != '\0') {
        return status;
    }
    /* the file is not the cause */
    if (status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM) {
        return sj_fail(source->error, status, "cannot import %s: %s", source->path,
                       sj_status_text(status));
    }
    return sj_source_fail(source, status, sj_source_offset(source), "%s",
                          status == SJ_ELIMIT ? "it has too many functions, threads or call paths, "
                                                "or a number that is too large"
                                              : sj_status_text(status));
}

static sj_status read_folder(const sj_import_request *request, const sj_importer **used,
                             sj_import_log *log, sj_import_origin *origin, sj_error *error)
{
    *used = request->importer != NULL ? request->importer : &sj_importer_uftrace;
    if ((*used)->read_folder == NULL) {
        return sj_fail(error, SJ_EUNSUPPORTED, "%s is a folder, but %s is the format of a file",
                       request->path, (*used)->name);
    }
    origin->format = (*used)->name;
    const sj_status status = (*used)->read_folder(request->path, log, &origin->session, error);
    return status == SJ_OK || error->text[0] != '\0'
               ? status
               : sj_fail(error, status, "cannot import %s: %s", request->path,
                         sj_status_text(status));
}

static sj_status read_source(sj_source *source, const sj_import_request *request,
                             const sj_importer **used, sj_import_log *log, sj_import_origin *origin)
{
    *used = request->importer != NULL ? request->importer : recognize(source);
    if (*used == NULL) {
        return refuse_unknown(source);
    }
    if ((*used)->read == NULL) {
        return sj_fail(source->error, SJ_EUNSUPPORTED,
                       "%s is a file, but %s is the format of a folder", source->path,
                       (*used)->name);
    }
    const sj_status status = (*used)->read(source, log);
    if (status != SJ_OK) {
        return explain(source, status);
    }
    origin->format = (*used)->name;
    return sj_source_end(source, origin->format, &origin->session);
}

/* Reads the file, or the folder if `file` is NULL, and writes the database. */
static sj_status import_open(FILE *file, const sj_import_request *request, const sj_importer **used,
                             sj_import_sums *sums, sj_error *error)
{
    sj_import_origin origin = {.file = last_part(request->path)};
    origin.name = request->name != NULL ? request->name : origin.file;
    sj_import_log log = {0};
    sj_source *source = malloc(sizeof(*source));
    sj_status status = source != NULL ? sj_import_log_init(&log, request->database, error)
                                      : sj_fail(error, SJ_ENOMEM, "no memory for an import");
    if (status == SJ_OK && file == NULL) {
        status = read_folder(request, used, &log, &origin, error);
    } else if (status == SJ_OK) {
        sj_source_init(source, file, request->path, error);
        status = read_source(source, request, used, &log, &origin);
    }
    if (status == SJ_OK) {
        status = sj_import_write(&log, &origin, request->database, sums, error);
    }
    sj_import_log_deinit(&log);
    free(source);
    return status;
}

sj_status sj_import_file(const sj_import_request *request, const sj_importer **used,
                         sj_import_sums *sums, sj_error *error)
{
    struct stat about;
    *error = (sj_error){0};
    if (strcmp(request->path, "-") == 0) {
        return import_open(stdin, request, used, sums, error);
    }
    if (stat(request->path, &about) == 0 && S_ISDIR(about.st_mode)) {
        return import_open(NULL, request, used, sums, error);
    }
    FILE *file = fopen(request->path, "rbe");
    if (file == NULL) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot open %s: %s",
                       request->path, strerror(errno));
    }
    const sj_status status = import_open(file, request, used, sums, error);
    fclose(file);
    return status;
}
