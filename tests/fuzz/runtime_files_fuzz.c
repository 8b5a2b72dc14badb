/* Salvages what a killed recorder left in its runtime directory beside the arenas and the journal.
 * The input is two lengths (16 bits each), then the control frames, the profile's sums and a flight
 * block. All hold arbitrary bytes. */
#include "agent/modes/flight_recorder.h"
#include "agent/modes/profile.h"
#include "agent/session/metadata_store.h"
#include "proto/base/cursor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void write_file(const char *directory, const char *name, sj_slice bytes)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(file >= 0 &&
         (bytes.size == 0 || write(file, bytes.data, bytes.size) == (ssize_t)bytes.size));
    close(file);
}

static sj_status remember(void *context, sj_frame_type type, sj_slice header, sj_slice payload)
{
    return sj_frame_writer_remember(context, type, header, payload);
}

/* Bad bytes are skipped, or end the salvage with a status. They must not do any harm. */
static void salvage(const char *directory, const sj_journal *journal, sj_frame_writer *writer)
{
    const sj_flight_recorder_options flight_options = {.writer = writer,
                                                       .before_ticks = UINT64_MAX,
                                                       .max_bytes = UINT64_MAX,
                                                       .directory = directory};
    const sj_profiler_options profiler = {
        .writer = writer, .journal = journal, .runtime_directory = directory};
    sj_flight_recorder *flight;
    sj_session_id child;
    (void)!sj_profiler_recover(&profiler);
    must(sj_metadata_store_read(directory, writer, remember) != SJ_ENOTFOUND);
    sj_frame_writer_keep_threads(writer, true);
    must(sj_flight_recorder_new(&flight_options, &flight) == SJ_OK);
    must(sj_flight_recorder_load(flight, directory) == SJ_OK);
    must(sj_flight_recorder_dump(flight, 1000, "fuzz", &child) == SJ_OK);
    (void)!sj_flight_recorder_ship(flight, 1000);
    sj_flight_recorder_free(flight);
}

static sj_slice read_part(sj_reader *reader, size_t wanted)
{
    const size_t left = sj_reader_left(reader);
    const size_t bytes = wanted < left ? wanted : left;
    return (sj_slice){.data = sj_read_bytes(reader, bytes), .size = bytes};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char directory[64], spool_directory[96], command[96];
    const sj_session_id session = {.bytes = {1}};
    sj_journal journal;
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_error error = {0};
    sj_reader reader = sj_reader_of(data, size);
    const uint16_t control_bytes = sj_read_u16(&reader);
    const uint16_t sums_bytes = sj_read_u16(&reader);
    if (reader.bad) {
        return 0;
    }
    snprintf(directory, sizeof(directory), "/tmp/runtime_fuzz.%d", (int)getpid());
    snprintf(spool_directory, sizeof(spool_directory), "%s/spool", directory);
    mkdir(directory, 0700);
    write_file(directory, "control-frames", read_part(&reader, control_bytes));
    write_file(directory, "profile-sums", read_part(&reader, sums_bytes));
    write_file(directory, "flight-1", read_part(&reader, size));
    must(sj_journal_create(directory, &session, &journal, &error) == SJ_OK);
    const sj_spool_options spool_options = {.directory = spool_directory, .reserve_bytes = 1};
    must(sj_spool_open(&spool_options, &spool, &error) == SJ_OK);
    const sj_frame_writer_options options = {
        .session = session, .spool = spool, .journal = &journal};
    must(sj_frame_writer_new(&options, &writer) == SJ_OK);
    salvage(directory, &journal, writer);
    sj_frame_writer_free(writer);
    sj_spool_close(spool);
    sj_journal_close(&journal);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0;
}
