#include "agent/objfile/source_package.h"

#include "proto/base/array.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 << 20, READ_BYTES = 64 << 10, NAME_BYTES = SJ_PACKAGE_NAME_BYTES };

/* A text that several files are read into, one after the other. It begins with a newline and ends
 * with a NUL, so that a search can match whole lines. */
typedef struct text {
    char *bytes; /* owned */
    size_t count;
    size_t capacity;
} text;

typedef struct package_lists {
    char path[PATH_MAX];
    DIR *info;   /* folder with one list of files per package */
    text status; /* dpkg's file of installed packages */
    text list;   /* the list of files that was read last */
} package_lists;

static sj_status append(text *to, const char *bytes, size_t count)
{
    SJ_TRY(sj_array_reserve(&to->bytes, &to->capacity, to->count, count + 1, 1));
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    to->bytes[to->count] = '\0';
    return SJ_OK;
}

/* Replaces the text by a newline and the content of a file, which is cut after about
 * FILE_MAX_BYTES. */
static sj_status read_text(int folder, const char *name, text *into)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return SJ_ENOTFOUND;
    }
    into->count = 0;
    sj_status status = append(into, "\n", 1);
    ssize_t read_bytes = 1;
    while (status == SJ_OK && read_bytes > 0 && into->count < FILE_MAX_BYTES) {
        status = sj_array_reserve(&into->bytes, &into->capacity, into->count, READ_BYTES + 1, 1);
        read_bytes = status == SJ_OK ? read(fd, into->bytes + into->count, READ_BYTES) : 0;
        into->count += read_bytes > 0 ? (size_t)read_bytes : 0;
    }
    close(fd);
    return status == SJ_OK ? append(into, "", 0) : status;
}

/* True if the text has the line `prefix` + `path`. */
static bool has_line(const char *bytes, size_t count, const char *prefix, const char *path)
{
    char line[PATH_MAX + 8];
    const int length = snprintf(line, sizeof(line), "\n%s%s\n", prefix, path);
    return length > 0 && (size_t)length < sizeof(line) && count != 0 &&
           memmem(bytes, count, line, (size_t)length) != NULL;
}

/* Returns the part of a path after a leading /usr, or the whole path. */
static const char *below_usr(const char *path)
{
    return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

/* True if the list has the path, with or without a leading /usr. Debian has moved files from / to
 * /usr. */
static bool lists_path(const char *bytes, size_t count, const char *path)
{
    return has_line(bytes, count, "/usr", below_usr(path)) ||
           has_line(bytes, count, "", below_usr(path));
}

/* Copies the package's name from the name of its list, such as "libjq1:amd64.list". Returns false
 * for files that are not lists. */
static bool package_of_list(const char *file, char name[NAME_BYTES])
{
    const size_t length = strcspn(file, ":");
    const char *ending = strrchr(file, '.');
    if (ending == NULL || strcmp(ending, ".list") != 0) {
        return false;
    }
    const size_t bytes = length < (size_t)(ending - file) ? length : (size_t)(ending - file);
    return snprintf(name, NAME_BYTES, "%.*s", (int)bytes, file) < NAME_BYTES;
}

/* True if the names of a package's list and of a program begin alike. */
static bool begins_alike(const char *list, const char *program)
{
    enum { ALIKE_BYTES = 3 };
    const char *slash = strrchr(program, '/');
    return strncmp(list, slash != NULL ? slash + 1 : program, ALIKE_BYTES) == 0;
}

/* Finds the package that contains a program, among the lists whose names begin like the program's,
 * or among the others. */
static sj_status find_owner_among(package_lists *lists, const char *program, bool is_alike,
                                  char owner[NAME_BYTES])
{
    rewinddir(lists->info);
    for (struct dirent *entry = readdir(lists->info); entry != NULL; entry = readdir(lists->info)) {
        if (begins_alike(entry->d_name, program) != is_alike ||
            !package_of_list(entry->d_name, owner)) {
            continue;
        }
        const sj_status status = read_text(dirfd(lists->info), entry->d_name, &lists->list);
        if (status == SJ_ENOMEM ||
            (status == SJ_OK && lists_path(lists->list.bytes, lists->list.count, program))) {
            return status;
        }
    }
    return SJ_ENOTFOUND;
}

/* Finds the package that contains a program. Most packages with programs have the name of one of
 * them. Lists of such names are read first, because the program waits meanwhile, and there are
 * thousands of lists. */
static sj_status find_owner(package_lists *lists, const char *program, char owner[NAME_BYTES])
{
    const sj_status status = find_owner_among(lists, program, true, owner);
    return status == SJ_ENOTFOUND ? find_owner_among(lists, program, false, owner) : status;
}

/* Copies the word after `field` at the beginning of a line of a paragraph. */
static bool copy_field(const char *paragraph, const char *end, const char *field,
                       char value[NAME_BYTES])
{
    const char *found = memmem(paragraph, (size_t)(end - paragraph), field, strlen(field));
    if (found == NULL) {
        return false;
    }
    found += strlen(field);
    return snprintf(value, NAME_BYTES, "%.*s", (int)strcspn(found, " \n"), found) < NAME_BYTES;
}

/* Reads the names of a package and of its source package from a paragraph of the status file.
 * Returns the next paragraph, or NULL. */
static const char *read_paragraph(const char *paragraph, char package[NAME_BYTES],
                                  char source[NAME_BYTES])
{
    const char *next = strstr(paragraph, "\n\n");
    const char *end = next != NULL ? next : paragraph + strlen(paragraph);
    package[0] = '\0';
    if (copy_field(paragraph, end, "\nPackage: ", package) &&
        !copy_field(paragraph, end, "\nSource: ", source)) {
        snprintf(source, NAME_BYTES, "%s", package);
    }
    return next != NULL ? next + 1 : NULL;
}

/* Appends the names of all packages that have the same source package as `owner`, each between
 * newlines. */
static sj_status find_packages(const package_lists *lists, const char *owner, text *packages)
{
    char package[NAME_BYTES];
    char source[NAME_BYTES];
    char wanted[NAME_BYTES] = "";
    const char *next = lists->status.bytes;
    while (next != NULL && wanted[0] == '\0') {
        next = read_paragraph(next, package, source);
        if (strcmp(package, owner) == 0) {
            snprintf(wanted, sizeof(wanted), "%s", source);
        }
    }
    sj_status status = append(packages, "\n", 1);
    next = wanted[0] != '\0' ? lists->status.bytes : NULL;
    while (next != NULL && status == SJ_OK) {
        next = read_paragraph(next, package, source);
        if (package[0] != '\0' && strcmp(source, wanted) == 0) {
            status = append(packages, package, strlen(package));
            status = status == SJ_OK ? append(packages, "\n", 1) : status;
        }
    }
    return status;
}

/* Appends the lines of a list that contain ".so". */
static sj_status add_libraries(const text *list, text *libraries)
{
    sj_status status = SJ_OK;
    for (const char *line = list->bytes + 1; *line != '\0' && status == SJ_OK;) {
        const size_t length = strcspn(line, "\n");
        if (memmem(line, length, ".so", 3) != NULL) {
            status = append(libraries, line, length);
            status = status == SJ_OK ? append(libraries, "\n", 1) : status;
        }
        line += length + (line[length] == '\n');
    }
    return status;
}

/* Appends the libraries of all `packages`. */
static sj_status read_libraries(package_lists *lists, const text *packages, text *libraries)
{
    char name[NAME_BYTES];
    sj_status status = append(libraries, "\n", 1);
    rewinddir(lists->info);
    for (struct dirent *entry = readdir(lists->info); entry != NULL && status == SJ_OK;
         entry = readdir(lists->info)) {
        if (package_of_list(entry->d_name, name) &&
            has_line(packages->bytes, packages->count, "", name) &&
            read_text(dirfd(lists->info), entry->d_name, &lists->list) == SJ_OK) {
            status = add_libraries(&lists->list, libraries);
        }
    }
    return status;
}

sj_status sj_owning_package_find(const char *database, const char *path,
                                 char package[SJ_PACKAGE_NAME_BYTES])
{
    package_lists lists = {0};
    snprintf(lists.path, sizeof(lists.path), "%s/info", database);
    lists.info = opendir(lists.path);
    const sj_status status = lists.info != NULL ? find_owner(&lists, path, package) : SJ_ENOTFOUND;
    if (lists.info != NULL) {
        closedir(lists.info);
    }
    free(lists.list.bytes);
    return status;
}

sj_status sj_source_files_read(const char *database, const char *program, sj_source_files *files)
{
    char owner[NAME_BYTES];
    text packages = {0};
    text libraries = {0};
    package_lists lists = {0};
    snprintf(lists.path, sizeof(lists.path), "%s/status", database);
    sj_status status = read_text(AT_FDCWD, lists.path, &lists.status);
    snprintf(lists.path, sizeof(lists.path), "%s/info", database);
    lists.info = status == SJ_OK ? opendir(lists.path) : NULL;
    status = status == SJ_OK && lists.info == NULL ? SJ_ENOTFOUND : status;
    status = status == SJ_OK ? find_owner(&lists, program, owner) : status;
    status = status == SJ_OK ? find_packages(&lists, owner, &packages) : status;
    status = status == SJ_OK ? read_libraries(&lists, &packages, &libraries) : status;
    if (lists.info != NULL) {
        closedir(lists.info);
    }
    free(lists.status.bytes);
    free(lists.list.bytes);
    free(packages.bytes);
    if (status != SJ_OK) {
        free(libraries.bytes);
        return status;
    }
    *files = (sj_source_files){libraries.bytes, libraries.count, libraries.capacity};
    return SJ_OK;
}

bool sj_source_files_has(const sj_source_files *files, const char *path)
{
    return lists_path(files->text, files->bytes, path);
}

void sj_source_files_deinit(sj_source_files *files)
{
    free(files->text);
    *files = (sj_source_files){0};
}
