/* Opens a journal that holds arbitrary bytes. Byte 0 says how much of the file exists (in 1/255).
 * The next 8 bytes are the length of the spool. The rest is the begin of the journal. */
#include "agent/session/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_journal(const char *directory, const uint8_t *data, size_t size, size_t length)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/journal", directory);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const size_t written = size < length ? size : length;
    if (file < 0 || write(file, data, written) != (ssize_t)written ||
        ftruncate(file, (off_t)length) != 0) {
        abort();
    }
    close(file);
}

/* Continues as a new recorder does where the killed one stopped. */
static void use_journal(const sj_journal *journal, uint64_t spool_end)
{
    const sj_journal_process process = {.number = 1};
    const sj_journal_sums before = sj_journal_recover(journal, spool_end);
    sj_journal_sums next = before;
    next.blocks++;
    sj_journal_begin(journal, &next, spool_end);
    sj_journal_commit(journal, false);
    if (sj_journal_recover(journal, spool_end).blocks != before.blocks) {
        abort(); /* a frame that was not appended must not change anything */
    }
    sj_journal_begin(journal, &next, spool_end);
    if (sj_journal_recover(journal, spool_end + 1).blocks != next.blocks) {
        abort(); /* an appended frame counts even if it was not committed */
    }
    for (int i = 0; i < 3; i++) {
        sj_journal_add_process(journal, &process);
    }
    if (journal->data->process_count > SJ_JOURNAL_PROCESSES) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char directory[64], command[96];
    sj_journal journal;
    uint64_t spool_end = 0;
    sj_error error = {0};
    if (size < 1 + sizeof(spool_end)) {
        return 0;
    }
    memcpy(&spool_end, data + 1, sizeof(spool_end));
    spool_end &= UINT64_MAX >> 1;
    snprintf(directory, sizeof(directory), "/tmp/journal_fuzz.%d", (int)getpid());
    mkdir(directory, 0700);
    write_journal(directory, data + 1 + sizeof(spool_end), size - 1 - sizeof(spool_end),
                  sizeof(sj_journal_data) * data[0] / 255);
    const sj_status status = sj_journal_open(directory, &journal, &error);
    if (status == SJ_OK) {
        use_journal(&journal, spool_end);
        sj_journal_close(&journal);
    } else if (error.text[0] == '\0' || journal.data != NULL) {
        abort(); /* a refusal must give a reason and leave nothing open */
    }
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0;
}
