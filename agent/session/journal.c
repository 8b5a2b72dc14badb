#include "agent/session/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sj_status join_name(const char *runtime_directory, char *path, sj_error *error)
{
    const int written = snprintf(path, PATH_MAX, "%s/journal", runtime_directory);
    return written > 0 && written < PATH_MAX
               ? SJ_OK
               : sj_fail(error, SJ_ELIMIT, "the path of the runtime directory is too long");
}

static sj_status map_journal(const char *path, sj_journal *journal, sj_error *error)
{
    void *data =
        mmap(NULL, sizeof(sj_journal_data), PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd, 0);
    if (data == MAP_FAILED) {
        return sj_fail(error, SJ_EIO, "cannot map %s: %s", path, strerror(errno));
    }
    journal->data = data;
    return SJ_OK;
}

sj_status sj_journal_create(const char *runtime_directory, const sj_session_id *session,
                            sj_journal *journal, sj_error *error)
{
    char path[PATH_MAX];
    *journal = (sj_journal){.fd = -1};
    SJ_TRY(join_name(runtime_directory, path, error));
    journal->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* Reserve the blocks, so that a full tmpfs is an error here instead of a SIGBUS later. */
    const int problem =
        journal->fd < 0 ? errno : posix_fallocate(journal->fd, 0, sizeof(sj_journal_data));
    if (problem != 0) {
        sj_journal_close(journal);
        return sj_fail(error, SJ_EIO, "cannot write %s: %s%s", path, strerror(problem),
                       problem == ENOSPC ? "; make room there, or point XDG_RUNTIME_DIR at a "
                                           "larger tmpfs"
                                         : "");
    }
    const sj_status status = map_journal(path, journal, error);
    if (status != SJ_OK) {
        sj_journal_close(journal);
        return status;
    }
    journal->data->session = *session;
    journal->data->version = SJ_JOURNAL_VERSION;
    atomic_signal_fence(memory_order_seq_cst); /* the magic says that the others are valid */
    journal->data->magic = SJ_JOURNAL_MAGIC;
    return SJ_OK;
}

static sj_status fail_unfinished(const char *path, sj_error *error)
{
    return sj_fail(error, SJ_ENOTFOUND, "%s: its recorder was killed before it recorded", path);
}

sj_status sj_journal_open(const char *runtime_directory, sj_journal *journal, sj_error *error)
{
    char path[PATH_MAX];
    struct stat about;
    *journal = (sj_journal){.fd = -1};
    SJ_TRY(join_name(runtime_directory, path, error));
    journal->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (journal->fd < 0) {
        return sj_fail(error, errno == ENOENT ? SJ_ENOTFOUND : SJ_EIO, "cannot open %s: %s", path,
                       strerror(errno));
    }
    sj_status status = SJ_OK;
    const bool is_own = fstat(journal->fd, &about) == 0 && about.st_uid == geteuid();
    if (is_own && about.st_size == 0) {
        status = fail_unfinished(path, error);
    } else if (!is_own || (size_t)about.st_size < sizeof(sj_journal_data)) {
        status = sj_fail(error, SJ_ECORRUPT, "%s is not a journal of this user", path);
    }
    if (status == SJ_OK) {
        status = map_journal(path, journal, error);
    }
    if (status == SJ_OK && journal->data->magic == 0) {
        status = fail_unfinished(path, error);
    }
    if (status == SJ_OK && (journal->data->magic != SJ_JOURNAL_MAGIC ||
                            journal->data->process_count > SJ_JOURNAL_PROCESSES ||
                            journal->data->state > (SJ_JOURNAL_PENDING | 1))) {
        status = sj_fail(error, SJ_ECORRUPT, "%s is damaged", path);
    }
    if (status == SJ_OK && journal->data->version != SJ_JOURNAL_VERSION) {
        status = sj_fail(error, SJ_EVERSION, "%s was written by another version", path);
    }
    if (status != SJ_OK) {
        sj_journal_close(journal);
    }
    return status;
}

void sj_journal_close(sj_journal *journal)
{
    if (journal->data != NULL) {
        munmap(journal->data, sizeof(sj_journal_data));
        close(journal->fd);
    } else if (journal->fd > 0) {
        close(journal->fd);
    }
    *journal = (sj_journal){.fd = -1};
}

void sj_journal_add_process(const sj_journal *journal, const sj_journal_process *process)
{
    sj_journal_data *data = journal->data;
    if (data == NULL || data->process_count >= SJ_JOURNAL_PROCESSES) {
        return;
    }
    data->processes[data->process_count] = *process;
    atomic_fetch_add(&data->process_count, 1);
}

void sj_journal_begin(const sj_journal *journal, const sj_journal_sums *sums, uint64_t spool_end)
{
    sj_journal_data *data = journal->data;
    if (data != NULL) {
        data->sums[1 - data->state] = *sums;
        data->end_before = spool_end;
        atomic_store(&data->state, data->state | SJ_JOURNAL_PENDING);
    }
}

void sj_journal_commit(const sj_journal *journal, bool appended)
{
    sj_journal_data *data = journal->data;
    if (data != NULL) {
        /* One atomic store selects the valid sums, which change all at once. */
        atomic_store(&data->state, appended ? 1 - (data->state & 1) : data->state & 1);
    }
}

sj_journal_sums sj_journal_recover(const sj_journal *journal, uint64_t spool_end)
{
    sj_journal_data *data = journal->data;
    if ((data->state & SJ_JOURNAL_PENDING) != 0) {
        sj_journal_commit(journal, spool_end > data->end_before);
    }
    return data->sums[data->state];
}
