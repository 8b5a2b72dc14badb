/* Opens a spool whose only segment and ledger hold arbitrary bytes. Byte 0 says how many bytes of
 * the input are the ledger. The rest is the segment. */
#include "agent/uplink/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, data, size) != (ssize_t)size) {
        abort();
    }
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char directory[64], path[128], command[128];
    sj_spool *spool = NULL;
    sj_slice frame;
    uint64_t position;
    if (size == 0) {
        return 0;
    }
    const size_t ledger = data[0] < size ? data[0] : 0;
    snprintf(directory, sizeof(directory), "spool_fuzz.%d", (int)getpid());
    mkdir(directory, 0700);
    snprintf(path, sizeof(path), "%s/acked", directory);
    write_file(path, data + 1, ledger);
    snprintf(path, sizeof(path), "%s/00000001.frames", directory);
    write_file(path, data + 1 + ledger, size - 1 - ledger);
    const sj_spool_options options = {.directory = directory, .reserve_bytes = 1};
    if (sj_spool_open(&options, &spool, NULL) == SJ_OK) {
        sj_status status;
        while ((status = sj_spool_next(spool, &frame, &position)) != SJ_EAGAIN) {
            if (status == SJ_OK && sj_spool_acknowledge(spool, position) != SJ_OK) {
                abort();
            }
            if (status != SJ_OK && status != SJ_ECORRUPT) {
                abort();
            }
        }
        sj_spool_counters counters;
        sj_spool_get_counters(spool, &counters);
        if (counters.pending_bytes != 0) {
            abort(); /* every byte must be delivered or counted as damage */
        }
        sj_spool_close(spool);
    }
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0;
}
