#include "agent/uplink/spool_aside.h"

#include "proto/base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACCOUNT_BYTES = 512 };

static bool write_whole(int file, sj_slice bytes)
{
    size_t written = 0;
    while (written < bytes.size) {
        const ssize_t count = write(file, bytes.data + written, bytes.size - written);
        if (count <= 0) {
            return false;
        }
        written += (size_t)count;
    }
    return true;
}

static void path_in(const char *directory, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.3900s/aside/%s", directory, name);
}

/* Opens a file of the folder, which is created if it is missing. */
static int open_in(const char *directory, const char *name, int flags)
{
    char path[PATH_MAX];
    path_in(directory, "", path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    path_in(directory, name, path);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void remove_in(const char *directory, const char *name)
{
    char path[PATH_MAX];
    path_in(directory, name, path);
    unlink(path);
}

enum { NAME_BYTES = 64 };

static void name_of(uint64_t position, const char *kind, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%08u-%08" PRIx64 ".%.16s", (unsigned)(position >> 32),
             position & UINT32_MAX, kind);
}

/* Writes the bytes to a file that ends with `kind`, and adds them to `aside->bytes`. Returns false,
 * without a file, if they are NULL or exceed SJ_ASIDE_MOST_BYTES, or if the disk is full. */
static bool keep(const char *directory, sj_spool_aside *aside, uint64_t position, const char *kind,
                 sj_slice bytes)
{
    char name[NAME_BYTES];
    name_of(position, kind, name);
    if (bytes.data == NULL || aside->bytes + bytes.size > SJ_ASIDE_MOST_BYTES) {
        return false;
    }
    const int file = open_in(directory, name, O_WRONLY | O_CREAT | O_TRUNC);
    if (file < 0) {
        return false;
    }
    const bool is_kept = write_whole(file, bytes);
    close(file);
    if (is_kept) {
        aside->bytes += bytes.size;
    } else {
        remove_in(directory, name);
    }
    return is_kept;
}

bool sj_spool_aside_read(const char *directory, sj_spool_aside *aside)
{
    char path[PATH_MAX];
    char text[ACCOUNT_BYTES] = "";
    int end = 0;
    *aside = (sj_spool_aside){0};
    snprintf(path, sizeof(path), "%.3900s/aside/account", directory);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return false;
    }
    const ssize_t got = read(file, text, sizeof(text) - 1);
    close(file);
    if (got <= 0 ||
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "\n%n", &aside->refused_frames,
               &aside->damaged_frames, &aside->bytes, &aside->unkept_frames, &end) != 4) {
        *aside = (sj_spool_aside){0};
        return false;
    }
    snprintf(aside->why, sizeof(aside->why), "%.*s", (int)strcspn(text + end, "\n"), text + end);
    return aside->refused_frames + aside->damaged_frames != 0;
}

/* Reserves the account's disk space first. Otherwise a write on a full disk could destroy the
 * previous account, if a crash of the machine made that shorter. */
static bool reserve_space(int file, size_t wanted)
{
    char blanks[ACCOUNT_BYTES];
    struct stat before;
    if (fstat(file, &before) != 0) {
        return false;
    }
    const size_t size = before.st_size < (off_t)wanted ? (size_t)before.st_size : wanted;
    memset(blanks, ' ', sizeof(blanks));
    if (pwrite(file, blanks, wanted - size, (off_t)size) == (ssize_t)(wanted - size)) {
        return true;
    }
    (void)!ftruncate(file, before.st_size);
    return false;
}

/* Writes the account. Returns false if the disk did not accept it; the previous account is then
 * intact. */
static bool write_account(const char *directory, const sj_spool_aside *aside)
{
    char text[ACCOUNT_BYTES];
    char why[SJ_ASIDE_WHY_BYTES];
    struct stat before;
    snprintf(why, sizeof(why), "%s", aside->why);
    for (char *at = why; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' ? ' ' : *at; /* Keeps the text on one line. */
    }
    /* A single write of fixed size: after a kill, the file has the new account or the previous
     * one. */
    memset(text, ' ', sizeof(text));
    const int size = snprintf(
        text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n%s\n",
        aside->refused_frames, aside->damaged_frames, aside->bytes, aside->unkept_frames, why);
    text[size] = ' ';
    const int file = open_in(directory, "account", O_WRONLY | O_CREAT);
    if (file < 0) {
        return false;
    }
    const bool is_new = fstat(file, &before) == 0 && before.st_size == 0;
    const bool is_written = reserve_space(file, sizeof(text)) &&
                            pwrite(file, text, sizeof(text), 0) == (ssize_t)sizeof(text);
    close(file);
    if (!is_written && is_new) {
        remove_in(directory, "account");
    }
    return is_written;
}

void sj_spool_aside_keep_torn(const char *directory, sj_spool_aside *aside, uint64_t position,
                              sj_slice bytes)
{
    static const char kind[] = "torn";
    sj_spool_aside after = *aside;
    if (!keep(directory, &after, position, kind, bytes)) {
        return;
    }
    if (write_account(directory, &after)) {
        *aside = after;
    } else {
        char name[NAME_BYTES];
        name_of(position, kind, name);
        remove_in(directory, name);
    }
}

bool sj_spool_aside_add(const char *directory, sj_spool_aside *aside, uint64_t position,
                        sj_slice bytes, const char *why)
{
    const char *kind = why != NULL ? "rejected" : "damaged";
    sj_spool_aside after = *aside;
    const bool is_kept = keep(directory, &after, position, kind, bytes);
    after.refused_frames += why != NULL;
    after.damaged_frames += why == NULL;
    after.unkept_frames += !is_kept;
    if (why != NULL) {
        snprintf(after.why, sizeof(after.why), "%s", why);
    }
    bool is_noted = write_account(directory, &after);
    if (!is_noted && is_kept) { /* The bytes used the space of the account, which matters more. */
        char name[NAME_BYTES];
        name_of(position, kind, name);
        remove_in(directory, name);
        after.bytes = aside->bytes;
        after.unkept_frames++;
        is_noted = write_account(directory, &after);
    }
    if (is_noted) {
        *aside = after;
    }
    return is_noted;
}

const char *sj_spool_aside_text(const sj_spool_aside *aside, const char *directory,
                                char text[SJ_ASIDE_TEXT_BYTES])
{
    char unkept[SJ_COUNTED_BYTES + 32] = "";
    char damaged[SJ_COUNTED_BYTES + 64] = "";
    if (aside->unkept_frames != 0) {
        snprintf(unkept, sizeof(unkept), ", without the bytes of %s",
                 SJ_COUNTED(aside->unkept_frames, "frame"));
    }
    if (aside->damaged_frames != 0) {
        snprintf(damaged, sizeof(damaged), "%s damaged on this device's disk, ",
                 SJ_COUNTED(aside->damaged_frames, "frame"));
    }
    snprintf(text, SJ_ASIDE_TEXT_BYTES,
             "%s%s refused by the collector for good (%" PRIu64
             " bytes, kept in %.1000s/aside%s)%s%s",
             damaged, SJ_COUNTED(aside->refused_frames, "frame"), aside->bytes, directory, unkept,
             aside->why[0] != '\0' ? ": " : "", aside->why);
    return text;
}

void sj_spool_aside_each(const char *root, sj_spool_aside_visit visit, void *context)
{
    DIR *folder = opendir(root);
    if (folder == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char directory[PATH_MAX];
        sj_spool_aside aside;
        snprintf(directory, sizeof(directory), "%.3600s/%s", root, entry->d_name);
        if (strlen(entry->d_name) == 2 * SJ_SESSION_ID_BYTES &&
            sj_spool_aside_read(directory, &aside)) {
            visit(context, entry->d_name, directory, &aside);
        }
    }
    closedir(folder);
}
